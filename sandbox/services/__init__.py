"""Stand-ins for the three services. All the stand-ins listen on the same port.

The stand-ins keep state, refuse incorrect calls, and fail when a test tells them to. The routes are
in `app.py`, and the state is in `state.py`. Each API has its own module: `inventory.py`,
`oauth.py`, `flow.py` and `email.py`. `limits.py` counts calls in the same way as the real inventory
service does. `faults.py` defines the faults, and `strike.py` applies them. Tests start the services
with `running.running_services`.
"""
