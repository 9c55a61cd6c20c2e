"""The outside things that objects track: file identity, indexing, trackers."""
