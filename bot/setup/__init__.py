"""`gatehouse setup`: creates a settings file from answers, then runs `gatehouse check`.

The answers come from `questions.py`, which asks in a terminal, or from a settings file with names
instead of IDs (`building.py`). `vendors.py` has the vendors' settings, `names.py` finds people and
channels in Slack, `accounts.py` calls the services, and `run.py` writes and checks the file.
"""
