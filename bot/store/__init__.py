"""The database: engine, tables, migrations and one module per aggregate."""
