"""The bot in a browser: a local Slack and stand-ins of the three services."""
