"""XTDB 1 behind a store: the database, its node, and the local copy in front of it."""
