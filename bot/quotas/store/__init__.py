"""Stored calls, accounts and incidents."""
