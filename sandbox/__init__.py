"""The bot in a browser: a local Slack and stand-ins for the three services."""
