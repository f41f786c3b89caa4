"""`gatehouse setup`: creates a settings file from answers, then runs `gatehouse check`.

The answers come from `questions.py`, which asks in a terminal, or from a settings file with names
instead of IDs. `answers.py` turns them into settings, with the vendors' settings of `vendors.py`.
`names.py` finds people and channels in Slack, and `run.py` writes and checks the file.
"""
