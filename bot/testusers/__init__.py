"""`/testusers`: changes of a flow's list of test users."""
