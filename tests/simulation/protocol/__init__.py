"""Small models of what docs/protocol.md says, searched through state by state."""
