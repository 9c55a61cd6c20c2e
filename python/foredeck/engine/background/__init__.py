"""Work beside the agent's own: when it runs, what it may ask of a model, and what that has cost."""
