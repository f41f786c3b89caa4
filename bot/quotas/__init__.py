"""Keeps calls within the inventory service's limits, handles blocks, and answers `/ratelimits`."""
