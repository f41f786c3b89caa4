"""Parsers of `/testusers` and its form."""
