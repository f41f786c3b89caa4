"""The gateway: the team's other programs call the inventory service through the bot's guard."""
