"""A local stand-in for Slack that has the features the bot and its tests need."""
