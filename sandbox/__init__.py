"""Lets you try the real bot in a browser. Stand-ins replace Slack and the three services."""
