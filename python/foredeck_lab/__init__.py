"""Measures foredeck: recorded sessions replayed, and tasks with a model."""
