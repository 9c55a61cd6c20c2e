"""foredeck inside somebody's own agent loop: `from foredeck import ContextManager`."""
