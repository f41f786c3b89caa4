"""A day of the whole bot from one seed: one loop, virtual time, several processes that die."""
