"""A session as a file of JSON lines; `export.py` describes the format."""
