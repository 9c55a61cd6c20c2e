"""The outside things that objects track: file identity, indexing and trackers."""
