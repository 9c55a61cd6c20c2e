"""What prompts cost, why a cache hit was lost, and what a model would have missed in them.

No model runs: the evidence is what was in view, not whether the model would have succeeded.
"""
