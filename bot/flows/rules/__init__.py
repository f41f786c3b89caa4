"""Pure functions about flows, identities and lists."""
