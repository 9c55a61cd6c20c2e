"""The store on XTDB 1: the database, its node, and the local copy in front of it."""
