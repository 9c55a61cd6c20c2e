"""A local copy in front of XTDB: the agent never waits for the database."""
