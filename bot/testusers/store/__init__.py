"""Stored requests, grants and lists."""
