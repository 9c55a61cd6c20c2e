"""`foredeck bench lifecycle`: what a session goes through in its life, case by case."""
