"""What was said in the turns of a session, and what its tools brought, for the question what is
worth remembering of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from foredeck.errors import Missing
from foredeck.memory.extracting.origin import ToolTexts
from foredeck.memory.extracting.question import Saying
from foredeck.model.messages import load_message, text_in
from foredeck.model.records import turn_id
from foredeck.search.fetching import Fetched
from foredeck.store.protocol import Head, Store

LOOKED_BACK = 60
"""Turns before the newest one whose tool results are compared with what was said."""
_RESULT_CHARS = 100_000
"""Compared of one result, from its beginning."""


@dataclass(frozen=True, slots=True)
class TurnTexts:
    """Sayings in their order, and all that tools brought in these turns and those before."""

    sayings: tuple[Saying, ...]
    tools: ToolTexts


def texts_of_turns(store: Store, session: str, first: int, last: int) -> TurnTexts:
    """Those of the turns `first` to `last` of a session, by number.

    A turn or result that cannot be read is left out: it is gone, and nothing follows from it.
    """
    wanted = _turns(store, session, range(first, last + 1))
    back = _turns(store, session, range(max(1, last - LOOKED_BACK), last + 1))
    return TurnTexts(tuple(_sayings(store, wanted)), ToolTexts.of(_results(store, back)))


def _turns(store: Store, session: str, numbers: Iterable[int]) -> list[Head]:
    ids = [turn_id(session, number) for number in numbers]
    found = store.heads(ids)
    return [found[id] for id in ids if id in found]


def _sayings(store: Store, turns: Sequence[Head]) -> list[Saying]:
    fetched = Fetched(store, turns)
    found: list[Saying] = []
    for turn in turns:
        for role in ("user", "assistant"):
            text = _text(turn.fields.get(role), fetched)
            if text.strip():
                found.append(Saying(len(found) + 1, role, text, turn.id))
    return found


def _text(address: Any, fetched: Fetched) -> str:
    if not isinstance(address, str):
        return ""
    try:
        message = load_message(address, fetched.blob)
    except Missing:
        return ""
    return text_in(message.get("content"))


def _results(store: Store, turns: Sequence[Head]) -> list[str]:
    ids = [id for turn in turns for id in turn.fields.get("toolcall_ids") or ()]
    heads = store.heads(ids)
    there = [heads[id] for id in dict.fromkeys(ids) if id in heads]
    fetched = Fetched(store, there)
    texts = []
    for head in there:
        try:
            texts.append(fetched.content(head)[:_RESULT_CHARS])
        except Missing:
            continue
    return texts
