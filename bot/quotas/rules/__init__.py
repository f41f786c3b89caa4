"""Pure rules of limits, blocks and use."""
