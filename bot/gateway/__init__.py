"""The gateway, which lets other programs call the inventory service within its limits."""
