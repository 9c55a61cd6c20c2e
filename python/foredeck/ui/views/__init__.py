"""The pages: each function takes what was asked for, reads the store, and returns a `WebPage`."""
