"""Block Kit, text escaping, and the messages that all topics share."""
