"""The judge: what recorded prompts would cost, and what a model would miss in them.

Design 2 section 6. No model runs: evidence is visibility, not success.
"""
