"""The judge: what recorded prompts would cost, and what a model would miss in them.

No model runs: evidence says what was visible, not whether the model would have succeeded.
"""
