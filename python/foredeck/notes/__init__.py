"""Notes: plain Markdown, read into references, tags, headings and properties, and their graph."""
