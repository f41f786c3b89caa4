"""Cards, forms, lists and notes about test users."""
