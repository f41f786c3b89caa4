"""The `/testusers` command: requests to change a flow's list of test users."""
