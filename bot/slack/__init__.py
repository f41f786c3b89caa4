"""Slack: the endpoint, the Web API client, people and groups, and everything shown there."""
