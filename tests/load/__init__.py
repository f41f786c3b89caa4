"""`make load` sends 200 commands per second to the real bot for one minute."""
