"""The inventory service's limits: the ledger, the guard, incidents, `/ratelimits`."""
