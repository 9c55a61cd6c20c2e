"""Tasks of a project: what is to be done, in which order, by whom, and what came of it."""
