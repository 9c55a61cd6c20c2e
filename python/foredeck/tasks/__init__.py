"""Tasks of a project: what is to be done, in which order, and by whom."""
