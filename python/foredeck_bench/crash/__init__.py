"""`foredeck bench crash`: what is killed, when, and what must hold afterwards."""
