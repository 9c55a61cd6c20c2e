"""foredeck between an agent and its model, as a proxy on loopback."""
