"""Pure rules about Slack users."""
