"""Parsing of words typed in Slack."""
