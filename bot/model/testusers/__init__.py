"""Test users of flows: changes, approvals and what applying a change means."""
