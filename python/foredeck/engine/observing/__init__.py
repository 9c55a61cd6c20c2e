"""Observing a session while its agent works: when, in which way, and by whom."""
