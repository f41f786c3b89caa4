"""How long the database is waited for, in seconds."""

CONNECT_SECONDS = 5
STATEMENT_SECONDS = 10
