"""Changing what was sent: what could change, and how it is written."""
