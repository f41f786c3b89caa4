"""Rough days of one flow: late POSTs, refusals, deleted flows, outside edits, other settings."""
