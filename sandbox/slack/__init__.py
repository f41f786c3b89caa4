"""A local Slack: enough of the Web API, of deliveries and of modals for the bot and its tests."""
