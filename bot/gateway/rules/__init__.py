"""Pure rules of the gateway: rights and requests."""
