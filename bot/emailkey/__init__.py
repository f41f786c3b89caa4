"""`/emailkey`: checks the email service's API key."""
