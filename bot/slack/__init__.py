"""Everything about Slack: the Web API client, people and groups, messages, and the app manifest."""
