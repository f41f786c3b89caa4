"""Block Kit, text escaping and the messages every topic shares."""
