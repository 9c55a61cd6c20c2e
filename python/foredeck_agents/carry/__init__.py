"""A session carried over: the work goes on in another agent."""
