"""Checks of the bot and its setup for `gatehouse check`, `/readyz` and `/gatehouse status`."""
