"""Operational code: logs, the clock, secrets, and the event loop."""
