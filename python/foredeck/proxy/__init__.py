"""foredeck between an agent and its model: a proxy on loopback that speaks the models' APIs."""
