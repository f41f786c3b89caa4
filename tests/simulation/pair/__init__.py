"""Two bots share a PostgreSQL database, and everything about them is checked from outside.

People send signed commands and clicks. A model reads only what people see, and the lists that the
flow service has.
"""
