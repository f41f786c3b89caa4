"""Words typed in Slack."""
