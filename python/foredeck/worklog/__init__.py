"""What was done: recognised from tool results, without a model."""
