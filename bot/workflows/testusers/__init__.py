"""Test users of flows: asking, deciding, applying, and what is told about it."""
