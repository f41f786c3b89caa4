"""Pure functions for requests, policies and times."""
