"""The rows of a store's SQLite file."""
