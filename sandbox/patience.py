"""How tests wait, in seconds: the timeout, and the pause between checks."""

# Long enough for the slowest machine.
PATIENCE_SECONDS = 60.0
LOOK_SECONDS = 0.1
