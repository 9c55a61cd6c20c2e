"""A trace as lines: of each span of calls what the prompt showed, where, and why no more."""

from __future__ import annotations

from collections.abc import Iterator

from foredeck.accounting.trace import Occurrence, Span, Trace
from foredeck.context.tools.reasons import REASONS

SHOWN = 3
"""How many places of a span are named."""


def rows_of(found: Trace) -> list[tuple[str, str, str]]:
    """The rows of a table: calls, state, and where, or why it is not there."""
    rows: list[tuple[str, str, str]] = []
    for span in found.spans:
        calls = str(span.first) if span.first == span.last else f"{span.first}-{span.last}"
        rows.append((calls, span.visibility.label, _where(span)))
        rows.extend(("", "", text) for text in _why(span))
    return rows


def text_of(found: Trace) -> str:
    """The same for a place where columns do not line up."""
    return "\n".join(
        f"calls {calls}: {state}{where and '; '}{where}" if calls else f"    {where}"
        for calls, state, where in rows_of(found)
    )


def _where(span: Span) -> str:
    best = [place for place in span.places if place.visibility == span.visibility]
    more = len(best) - SHOWN
    named = "; ".join(map(_place, best[:SHOWN]))
    return f"{named}; and {more} more" if more > 0 else named


def _place(place: Occurrence) -> str:
    handle = "" if place.handle is None else f" (@{place.handle})"
    at = "" if place.message is None else f"message {place.message}: "
    return f"{at}{place.what}{handle}"


def _why(span: Span) -> Iterator[str]:
    if not span.is_folded:
        return
    if span.reason:
        yield f"rewritten at call {span.first}: {REASONS.get(span.reason, span.reason)}"
    if span.given_up is not None:
        yield f"policy {span.policy} had given up the newest of these at call {span.given_up}"
    calls = f"{span.calls} call{'s' * (span.calls != 1)}"
    yield f"keeping its {span.tokens:,} tokens for {calls} would have cost {span.cost:,.0f}"
