"""What a model asks `memory-search` for, as models fill such things in: checked and bounded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, get_args

from foredeck.errors import ToolError
from foredeck.search import SEARCHED_TYPES

SearchScope = Literal["project", "session", "all"]

MOST_HITS, MOST_NEIGHBOURS = 20, 10
NEEDS_QUERY = (
    'memory-search needs "query": a few specific words, such as a function, a file or the text of '
    "an error."
)


@dataclass(frozen=True, slots=True)
class AskedSearch:
    """A search as a model wants it. `message_range`: neighbours before and after each hit."""

    query: str
    scope: SearchScope = "project"
    limit: int = 3
    message_range: int = 0
    type: str | None = None
    tool: str | None = None
    path: str | None = None
    since_ms: int | None = None
    task: str | None = None

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> AskedSearch:
        """From a tool's arguments; raises `ToolError`. Those that it does not know are ignored:
        a model that adds `"action": "search"` means nothing else by it."""
        query = given.get("query")
        if not isinstance(query, str) or not query.strip():
            raise ToolError(NEEDS_QUERY)
        return cls(
            query,
            _scope(given.get("scope")),
            _number(given, "limit", 3, 1, MOST_HITS),
            _number(given, "messageRange", 0, 0, MOST_NEIGHBOURS),
            _type(_text(given, "type")),
            _text(given, "tool"),
            _text(given, "path"),
            _moment(_text(given, "since")),
            _text(given, "task"),
        )


def _scope(given: Any) -> SearchScope:
    if given in (None, ""):
        return "project"
    if given in get_args(SearchScope):
        scope: SearchScope = given
        return scope
    raise ToolError(f'There is no scope {given!r}: it is "project", "session" or "all".')


def _type(given: str | None) -> str | None:
    if given is not None and given not in SEARCHED_TYPES:
        raise ToolError(f"There is no type {given!r}: it is {', '.join(SEARCHED_TYPES)}.")
    return given


def _text(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        raise ToolError(f"{name} must be text, not {value!r}.")
    return value or None


def _number(given: Mapping[str, Any], name: str, default: int, least: int, most: int) -> int:
    """A whole number within its bounds; models write "3" and 3.0, too."""
    value = given.get(name)
    if value is None or value == "":
        return default
    try:
        if isinstance(value, bool):
            raise ValueError
        return min(most, max(least, int(float(value))))
    except (TypeError, ValueError, OverflowError):
        raise ToolError(f"{name} must be a number from {least} to {most}, not {value!r}.") from None


def _moment(text: str | None) -> int | None:
    """The beginning of a day, or a moment, in milliseconds since 1970; without a zone local."""
    if text is None:
        return None
    try:
        return int(datetime.fromisoformat(text).astimezone().timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise ToolError(f"since must be a day such as 2026-05-01, not {text!r}.") from None
