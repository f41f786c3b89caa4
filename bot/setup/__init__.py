"""`gatehouse setup`: creates a settings file from answers, then runs `gatehouse check`.

`answers.py` defines the answers, `vendors.py` has the vendors' defaults, `questions.py` asks the
questions in a terminal, `names.py` finds people and channels in Slack, `accounts.py` calls the
services, `building.py` turns answers into settings, and `run.py` writes and checks the file.
"""
