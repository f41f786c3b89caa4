"""The HTTP client, credentials, and errors shared by the three services."""
