"""Simulates a day of the bot's work in virtual time. A seed determines what happens on that day."""
