"""A trace's result: spans of calls, as JSON and in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

from foredeck.model.figures import counted, short_count, some_of


class Visibility(IntEnum):
    """How much of a text a prompt shows; the highest place counts."""

    NEVER_SEEN = 0
    COMPACTED = 1
    """Left out with the chat around it; a summary replaces it."""
    FOLDED = 2
    ANNOUNCED = 3
    """Its content is folded, but a line names the text."""
    IN_VIEW = 4

    @property
    def label(self) -> str:
        """As it is printed: `in view`."""
        return self.name.lower().replace("_", " ")


class Occurrence(NamedTuple):
    """One message that holds the text."""

    visibility: Visibility
    message: int | None
    what: str
    """What it is: `result of read src/a.py`."""
    handle: int | None = None
    """Of the object whose content it carries."""

    @property
    def is_folded(self) -> bool:
        """Whether the text is in content that was folded."""
        return self.visibility in (Visibility.FOLDED, Visibility.ANNOUNCED)


@dataclass(slots=True)
class Span:
    """Calls in a row whose prompts show the text alike, at the same places; fields from `reason` on
    are of folded text."""

    first: int
    last: int
    visibility: Visibility
    session: str
    """Whose calls these are: a fork's first ones are its origin's."""
    places: list[Occurrence] = field(default_factory=list)
    """Places in the first prompt, the most visible first."""
    calls: int = 1
    reason: str | None = None
    """Why the prompt was rewritten at the first call."""
    because: str = ""
    """The same in words, with what was weighed."""
    policy: str = ""
    given_up: int | None = None
    """Since which call the policy would have folded it."""
    tokens: int = 0
    """How many tokens the newest folded message has."""
    cost: float = 0.0
    """What keeping it would have cost, in tokens of uncached input."""

    @property
    def best(self) -> list[Occurrence]:
        """The most visible places."""
        return [place for place in self.places if place.visibility == self.visibility]

    @property
    def is_folded(self) -> bool:
        """Whether the text stood in the chat, but its content was folded."""
        return self.visibility in (Visibility.FOLDED, Visibility.ANNOUNCED)


@dataclass(slots=True)
class Trace:
    """A text through the calls of one branch."""

    session: str
    text: str
    calls: int
    """How many calls the branch has."""
    spans: list[Span]
    origin: str = ""
    """The session it goes on from with a list of its own."""
    archived: int = 0
    """Messages without their text after `foredeck forget --texts`."""

    @property
    def over(self) -> str:
        """`17 calls of the branch that ends at call 20`."""
        end = f" that ends at call {self.spans[-1].last}" if self.spans else ""
        return f"{counted(self.calls, 'call')} of the branch{end}"

    def to_json(self) -> dict[str, Any]:
        return {
            "session": self.session,
            "text": self.text,
            "calls": self.calls,
            "over": self.over,
            "spans": [_span_json(span) for span in self.spans],
            "origin": self.origin or None,
            "archived": self.archived,
        }


def _span_json(span: Span) -> dict[str, Any]:
    folded = {
        "reason": span.reason,
        "given_up_at": span.given_up,
        "policy": span.policy,
        "tokens": span.tokens,
        "keeping_cost": round(span.cost, 1),
    }
    return {
        "first": span.first,
        "last": span.last,
        "session": span.session,
        "calls": span.calls,
        "state": span.visibility.label,
        "places": [_place_json(place) for place in span.places],
        **(folded if span.is_folded else {}),
    }


def _place_json(place: Occurrence) -> dict[str, Any]:
    handle = None if place.handle is None else f"@{place.handle}"
    return {
        "state": place.visibility.label,
        "message": place.message,
        "what": place.what,
        "handle": handle,
    }


# In words


SHOWN = 3
"""How many places of a span are named."""
SHOWN_ID = 13
"""Characters of a session's id; only sessions begun in one millisecond share as many."""


def rows_of(found: Trace) -> list[tuple[str, str, str]]:
    rows: list[tuple[str, str, str]] = []
    for span in found.spans:
        calls = str(span.first) if span.first == span.last else f"{span.first}-{span.last}"
        if span.session != found.session:
            calls += f" of {span.session[:SHOWN_ID]}"
        rows.append((calls, span.visibility.label, _where(span)))
        rows.extend(("", "", text) for text in _why(span))
    if found.origin:
        looks = f"`foredeck trace TEXT {found.origin[:SHOWN_ID]}` looks there"
        rows.append(("", "", f"it goes on from session {found.origin}: {looks}"))
    if found.archived:
        messages = counted(found.archived, "message")
        rows.append(("", "", f"what {messages} said was pruned, and is not looked through"))
    return rows


def text_of(found: Trace) -> str:
    lines = (
        f"calls {calls}: {state}{where and '; '}{where}" if calls else f"    {where}"
        for calls, state, where in rows_of(found)
    )
    return "\n".join([f"Looked over {found.over}.", *lines]) if found.spans else ""


def _where(span: Span) -> str:
    return some_of([_place(place) for place in span.best], SHOWN, "; ")


def _place(place: Occurrence) -> str:
    handle = "" if place.handle is None else f" (@{place.handle})"
    at = "" if place.message is None else f"message {place.message}: "
    return f"{at}{place.what}{handle}"


def _why(span: Span) -> Iterator[str]:
    if not span.is_folded:
        return
    if span.because:
        yield f"rewritten at call {span.first}{span.because}"
    if span.given_up is not None:
        yield f"policy {span.policy} had given up the newest of these at call {span.given_up}"
    if not span.tokens:
        return
    what = f"{short_count(span.tokens)} tokens for {counted(span.calls, 'call')}"
    yield f"keeping its {what} would have cost {short_count(span.cost)} input tokens"
