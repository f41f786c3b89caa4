"""The steps of one wish, in order."""
