"""Simulates a day of the bot from one seed: one loop, virtual time, and processes that die."""
