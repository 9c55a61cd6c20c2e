"""foredeck for any client of the Model Context Protocol. Needs the extra `foredeck[mcp]`."""
