"""The audit log: its messages and its command line."""
