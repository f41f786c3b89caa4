"""Pure rules of list changes."""
