"""Block Kit, text escaping, and the messages shared by all topics."""
