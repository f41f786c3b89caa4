"""How long tests wait for what has to come, and how often they look, in seconds."""

# No machine is that slow.
PATIENCE_SECONDS = 60.0
LOOK_SECONDS = 0.1
