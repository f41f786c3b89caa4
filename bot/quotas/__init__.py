"""The inventory service's limits: the ledger of calls, the guard, incidents, and `/ratelimits`."""
