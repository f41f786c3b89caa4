"""Organizations: the listing client, the directory, and `/orgs`."""
