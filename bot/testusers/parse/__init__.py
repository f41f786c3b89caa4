"""Parsers for the `/testusers` command and its form."""
