"""The soak: mixed work for minutes while processes are killed, held against a model at the end."""
