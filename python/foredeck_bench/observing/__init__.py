"""Observing under bad conditions: processes that are killed, and two that want the same."""
