"""Checks of the bot and its environment: `gatehouse check`, health, readiness, status."""
