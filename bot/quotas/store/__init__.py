"""Database access for calls, organizations, and incidents."""
