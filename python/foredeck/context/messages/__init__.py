"""Messages as the host has them: the stored shape, items, and what a provider accepts."""
