"""What the stored versions of files answer: whether an edit is stale, and what was before."""
