"""The soak: minutes of mixed work and killed processes, compared with a model at the end."""
