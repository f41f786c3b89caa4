"""Pure functions that calculate limits, blocks, and usage."""
