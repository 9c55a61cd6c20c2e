"""Changing what was sent: folding, its moment, what it will do to the cache."""
