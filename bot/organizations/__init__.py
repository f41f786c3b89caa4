"""Organizations: the listing client, the directory, `/orgs`."""
