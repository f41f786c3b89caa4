"""The soak: minutes of mixed work while processes are killed, then a comparison with a model."""
