"""Pure functions for list changes."""
