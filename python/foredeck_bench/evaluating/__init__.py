"""`foredeck eval` with a scripted model, which knows the solutions of the tasks."""
