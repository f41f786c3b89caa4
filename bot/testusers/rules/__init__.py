"""Pure functions for requests and for changes to lists."""
