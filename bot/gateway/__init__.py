"""The gateway: lets other programs call the inventory service through the bot's guard."""
