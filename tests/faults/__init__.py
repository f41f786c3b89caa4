"""`python -m tests.faults` runs all fault drills and prints the results."""
