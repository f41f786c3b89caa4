"""`python -m bot check`: tries everything that is configured, and names each mistake."""
