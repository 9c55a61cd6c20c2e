"""The providers of models by their documented rules.

Each rule stands beside its source; nothing here imports foredeck.
"""
