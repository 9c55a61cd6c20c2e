"""Derived layers: what is worked out from the store, kept beside it, and can be made again."""
