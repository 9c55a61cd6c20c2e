"""The lines over texts that stand in place of chat."""

from __future__ import annotations

from foredeck.context.wording import turns_span


def observed_heading(ordinal: int, first: int, last: int) -> str:
    """First line of an observation, where it stands in place of what it covers."""
    return _stands_for(ordinal, first, last, "as noted down")


def reflected_heading(ordinal: int, first: int, last: int) -> str:
    """First line of a reflection, by the same rule."""
    return _stands_for(ordinal, first, last, "condensed from notes")


def _stands_for(ordinal: int, first: int, last: int, how: str) -> str:
    turns = f"{first}-{last}" if last > first else str(first)
    return (
        f"[foredeck] {turns_span(first, last)} of this chat, {how} (@{ordinal}): derived, not the "
        f'user\'s words. activate "@{ordinal} turns {turns}" shows them word for word.'
    )
