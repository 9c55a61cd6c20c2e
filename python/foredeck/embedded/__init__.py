"""foredeck inside an agent loop of your own: `from foredeck import ContextManager`."""
