"""The store in XTDB itself, through its HTTP API."""
