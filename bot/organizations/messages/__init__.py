"""Messages about organizations."""
