"""What a command line runs, and what its output says of how that went. Pure."""
