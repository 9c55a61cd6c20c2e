"""What prompts cost, and whether the model saw what it used next."""
