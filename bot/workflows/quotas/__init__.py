"""Organizations and their limits: reserving, watching, incidents and alerts."""
