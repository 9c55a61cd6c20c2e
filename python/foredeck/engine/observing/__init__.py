"""Observes a session while its agent works."""
