"""Slack listeners: one module per slash command, each ending in register()."""
