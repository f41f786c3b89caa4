"""The inventory service's client, the organization directory, and the command `/orgs`."""
