"""The three services and Slack, over HTTP."""
