"""Messages become objects: alignment with what is known, files, tool calls, notices."""
