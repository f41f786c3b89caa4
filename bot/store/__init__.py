"""The database: engine, tables, migrations, and a module per aggregate."""
