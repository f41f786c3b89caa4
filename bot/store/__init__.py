"""The database: the engine, tables and migrations, and a module for each kind of stored data."""
