"""A session as a file: everything that belongs to it, with whole histories, as JSON lines.

Works through the `Store` protocol alone, so a file written from one kind of store can be read
into another. `export.py` describes the format.
"""
