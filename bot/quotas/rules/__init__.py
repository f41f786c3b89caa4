"""Pure functions for limits, blocks, and use."""
