"""Messages about health and status."""
