"""The inventory service's limits: ledger, guard, incidents, and `/ratelimits`."""
