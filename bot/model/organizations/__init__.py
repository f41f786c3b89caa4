"""Organizations of the inventory service, and how they are found."""
