"""The parts of `foredeck bench`: what each call, start, store and hook costs."""
