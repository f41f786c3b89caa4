"""Waiting in tests, in seconds: the longest wait, and the pause between two looks."""

# Long enough for the slowest machine.
PATIENCE_SECONDS = 60.0
LOOK_SECONDS = 0.1
