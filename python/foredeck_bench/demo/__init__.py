"""The demo: a scripted model, or a real one, works on a sample repository through Pi."""
