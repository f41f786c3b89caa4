"""`/testusers` and the approvals behind it, as people see them."""
