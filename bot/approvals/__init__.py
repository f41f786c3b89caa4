"""Requests that a second person decides."""
