"""A session's state: its index, sets, names, branches and the request at hand."""
