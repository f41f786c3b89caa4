"""Messages about limits and incidents."""
