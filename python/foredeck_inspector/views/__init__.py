"""The pages: each function reads the store, and returns a `WebPage`."""
