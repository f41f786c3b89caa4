"""Limits of the inventory service: windows, plans, blocks and forecasts."""
