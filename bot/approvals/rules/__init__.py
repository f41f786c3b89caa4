"""Pure rules of requests, policies and times."""
