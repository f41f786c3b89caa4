"""The Slack integration: the Web API client, people and groups, messages, and the app manifest."""
