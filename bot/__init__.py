"""Gatehouse, a Slack bot for approvals, API limits and test users of three web services."""

__version__ = "0.2.0"
