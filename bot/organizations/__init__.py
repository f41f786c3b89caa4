"""Organizations: the inventory service's client, the directory, and the command `/orgs`."""
