"""The timeout of tests that wait, and the pause between checks, in seconds."""

# Long enough for the slowest machine.
PATIENCE_SECONDS = 60.0
LOOK_SECONDS = 0.1
