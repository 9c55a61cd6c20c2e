"""A node of foredeck's own: installed, started, stopped, backed up."""
