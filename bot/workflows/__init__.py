"""The steps of one request, in order."""
