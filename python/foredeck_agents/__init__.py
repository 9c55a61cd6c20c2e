"""Other coding agents: their histories, the proxy, the MCP server, and carrying."""
