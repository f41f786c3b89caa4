"""`/testusers`: changes to a flow's list of test users."""
