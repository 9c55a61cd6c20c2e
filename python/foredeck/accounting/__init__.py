"""What prompts cost, why cache hits were lost, and what a model would have missed, without running
one."""
