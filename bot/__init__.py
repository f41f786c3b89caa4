"""Gatehouse, a Slack bot that manages test users, API limits and an email API key."""

__version__ = "0.4.0"
