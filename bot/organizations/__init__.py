"""The inventory service's client, the organization directory, and the `/orgs` command."""
