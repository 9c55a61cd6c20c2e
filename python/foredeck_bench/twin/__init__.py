"""The providers of models by their documented rules: what they refuse, keep, drop and charge.

Each rule stands beside its source: a page of the provider's documentation, the types of its SDK,
or Pi's own adapter. Nothing here imports foredeck or the rest of its benches.
"""
