"""The conversation as the host has it: items, their parts, what counts as a turn."""
