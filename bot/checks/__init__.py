"""Checks of the bot and its environment, used by `gatehouse check`, `/readyz` and the status."""
