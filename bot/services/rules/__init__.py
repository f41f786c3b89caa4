"""Values of a service call."""
