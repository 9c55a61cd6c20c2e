"""When a prompt does not fit, and compactions that somebody asks for."""
