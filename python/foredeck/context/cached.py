"""What the provider's cache may still hold of a branch, by the provider's rule. Pure.

Two rules are told apart. With `prefix` every byte that was sent is found again up to the first
one that differs. With `markers` (Anthropic's) an entry stands only where a marker stood in an
earlier request: at the end of the list then sent. It is found from a marker of the new request
that stands on it or less than `LOOKBACK_BLOCKS` content blocks behind it, and lives on from its
last use (design 2 section 3, "Prices").
"""

from __future__ import annotations

LOOKBACK_BLOCKS = 20
"""Positions at which Anthropic looks for an entry, counted back from a marker, itself included."""

MINIMUM_TOKENS = 1024
"""A shorter prompt is not kept."""
