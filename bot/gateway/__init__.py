"""The gateway, through which other programs call the inventory service within its limits."""
