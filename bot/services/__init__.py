"""The shared HTTP client of the three services, their credentials and errors."""
