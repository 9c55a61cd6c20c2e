"""Why a prompt was rewritten, or went out without foredeck, for its user."""

from __future__ import annotations

REASONS: dict[str, str] = {
    "cold": "the provider's cache had expired, so rewriting cost nothing extra",
    "model": "another model was chosen, whose cache held nothing of it",
    "history": "the host had changed what was sent before",
    "system": "other tools or instructions had come before the chat, so nothing of it was cached",
    "layout": "another layout was configured",
    "withdrawn": "what you have taken back, or what has changed, had to leave the head",
    "pays": "it pays",
    "look-back": "the provider's cache would not have found what stood there anyway",
    "no-cache": "the model has no prompt cache, so rewriting costs nothing extra",
    "high-water": "the prompt would have filled too much of the model's window",
    "tier": "each later call would have cost the price of longer prompts",
    "window": "the prompt would not have fitted the window",
    "off": "foredeck was switched off",
    "timeout": "the engine did not answer in time",
    "away": "the engine did not run",
}
"""Within a sentence."""
SHORT_REASONS: dict[str, str] = {
    "cold": "cache expired",
    "model": "other model",
    "history": "changed history",
    "system": "other tools",
    "layout": "other layout",
    "withdrawn": "taken back",
    "pays": "it pays",
    "look-back": "out of the cache's reach",
    "no-cache": "no cache",
    "high-water": "long prompt",
    "tier": "price tier",
    "window": "window full",
}
"""Short forms for tables."""
LOSSES: dict[str, str] = {
    "rebase: free": "rewriting for free",
    "rebase: paid": "rewriting that pays",
    "rebase: forced": "rewriting that had to be",
}
"""Causes of lost cache hits that the user knows by other words."""
