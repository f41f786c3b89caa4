"""The fault drills: `python -m tests.faults` runs all of them and prints the results."""
