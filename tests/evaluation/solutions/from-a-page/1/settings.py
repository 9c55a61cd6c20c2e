"""Settings from two places."""

from copy import deepcopy


def merge(lower, upper):
    """As SPEC.md says."""
    merged = deepcopy(lower)
    for key, value in upper.items():
        known = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            merged[key] = merge(known if isinstance(known, dict) else {}, value)
        elif isinstance(value, list) and isinstance(known, list):
            merged[key] = list(dict.fromkeys([*known, *deepcopy(value)]))
        else:
            merged[key] = deepcopy(value)
    return merged
