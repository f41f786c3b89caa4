"""Checks of everything around the bot: `gatehouse check`, health, readiness, status."""
