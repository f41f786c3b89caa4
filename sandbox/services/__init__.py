"""Stand-ins for the three services on one port: stateful, strict, and easy to disturb.

`app.py` routes, `state.py` remembers, and each area has its own module: `inventory.py`, `oauth.py`,
`flow.py`, `email.py`. `limits.py` counts calls as the inventory does, `faults.py` says what can go
wrong, and `strike.py` makes it go wrong. Tests start it with `running.running_services`.
"""
