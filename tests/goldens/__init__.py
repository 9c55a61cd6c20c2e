"""Goldens: what the model was sent at every call of many sessions, kept as hashes.

cd tests && python -m goldens --help
"""
