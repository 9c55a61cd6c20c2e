"""foredeck for any client of the Model Context Protocol."""
