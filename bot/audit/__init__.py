"""The audit: its messages and its command line."""
