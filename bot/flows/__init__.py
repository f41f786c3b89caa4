"""The flow service: flows, identities, and lists of test users."""
