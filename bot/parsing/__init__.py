"""Slash-command text to a typed request, or a usage error."""
