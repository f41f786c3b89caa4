"""A local Slack: enough of the Web API, deliveries and modals for the bot and its tests."""
