"""Pure rules of health and status."""
