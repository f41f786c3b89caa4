"""Checks of the bot and its environment, for `gatehouse check`, `/readyz` and the status."""
