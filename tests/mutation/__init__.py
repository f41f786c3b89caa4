"""Mutants of the pure rules, and whether their tests notice: `make mutate`."""
