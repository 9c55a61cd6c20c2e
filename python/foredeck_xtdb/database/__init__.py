"""The database: what XTDB itself holds, through its HTTP API."""
