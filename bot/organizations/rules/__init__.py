"""Pure rules of organizations and data centers."""
