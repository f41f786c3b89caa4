"""The HTTP client, credentials, and errors that the clients of all services share."""
