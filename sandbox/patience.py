"""Defines how long tests wait for a result, and how often they check for it."""

# Long enough for the slowest machine.
PATIENCE_SECONDS = 60.0
LOOK_SECONDS = 0.1
