"""The fault drills: `python -m tests.faults` runs them all and prints what they found."""
