"""Messages that foredeck puts between the host's, and their stored form.

Call records keep each as a JSON object whose keys say what it is for. Only this module reads and
writes that form; it reads all that earlier versions have written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from foredeck.context.messages.items import Block
from foredeck.model.messages import pack, unpack

Purpose = Literal[
    "head", "layout", "list_start", "summary", "observation", "calls", "turn_end", "no_result"
]
"""`head`: the block before the chat. `layout`: what a layout keeps apart from the chat.
`list_start`: a line at the start of the list, on a history that was cut or a summary of the
host's. `summary`, `observation`, `calls`: a text in place of the messages that it covers: of all
chat up to a message, of a span that was observed, of a run of folded calls. `turn_end`: what ended
a turn. `no_result`: the answer to a call that got none."""

SPANNING: frozenset[Purpose] = frozenset({"observation", "calls"})
"""They take the place of a span in the middle of the chat. Its last message counts their
characters."""

LASTING: frozenset[Purpose] = SPANNING | {"turn_end", "layout"}
"""They keep their place whatever else the list needs: signed reasoning may be bound to them."""


class MessageSpan(NamedTuple):
    """Messages of the host's in a row, by their indexes."""

    first: int
    until: int
    """The one after the last."""

    def holds(self, other: MessageSpan) -> bool:
        """Whether another span lies within this one."""
        return self.first <= other.first and other.until <= self.until


@dataclass(frozen=True, slots=True)
class Say:
    """A message of foredeck's own."""

    purpose: Purpose
    blocks: list[Block]
    covers: MessageSpan | None = None
    """The messages whose place it takes. Some of them may still go out, in their own places."""
    object: str | None = None
    """Id of the object that holds its text: a compaction, an observation or a reflection."""
    call_id: str = ""
    """`no_result`: the provider's id of the call that it answers."""
    tool: str = ""
    """`no_result`: the tool that was called."""
    head_tokens: int = 0
    """`head`: how many tokens it could have had."""


def pack_says(says: Sequence[Say], blobs: dict[str, bytes]) -> list[Any]:
    """The stored form; long texts join `blobs`."""
    return [pack(_to_stored(say), blobs) for say in says]


def unpack_says(packed: Sequence[Any], blob: Callable[[str], bytes]) -> list[Say]:
    """The inverse of `pack_says`."""
    return [_from_stored(unpack(each, blob)) for each in packed]


def packed_span(packed: Mapping[str, Any]) -> MessageSpan | None:
    """Of a stored message, the messages that it covers, without unpacking its text."""
    return MessageSpan(packed.get("from", 0), packed["until"]) if "until" in packed else None


def _to_stored(say: Say) -> dict[str, Any]:
    if say.purpose == "no_result":
        called = {"call_id": say.call_id, "tool": say.tool}
        return {"kind": "result", **called, "blocks": say.blocks}
    stored: dict[str, Any] = {"kind": "user", "blocks": say.blocks}
    match say.purpose:
        case "head":
            stored["head"] = say.head_tokens
        case "layout":
            stored["layout"] = True
        case "turn_end":
            stored["ends"] = True
        case "calls":
            stored["run"] = True
    if say.object is not None:
        stored["object"] = say.object
    if say.covers is not None:
        if say.purpose in SPANNING:
            stored["from"] = say.covers.first
        stored["until"] = say.covers.until
    return stored


def _from_stored(stored: Mapping[str, Any]) -> Say:
    blocks, tokens = stored["blocks"], stored.get("head", 0)
    if stored["kind"] == "result":
        return Say("no_result", blocks, call_id=stored["call_id"], tool=stored["tool"])
    return Say(
        _purpose(stored), blocks, packed_span(stored), stored.get("object"), head_tokens=tokens
    )


def _purpose(stored: Mapping[str, Any]) -> Purpose:
    if "from" in stored:
        return "calls" if stored.get("run") else "observation"
    if "until" in stored:
        return "summary"
    if stored.get("head"):
        return "head"
    if stored.get("layout"):
        return "layout"
    return "turn_end" if stored.get("ends") else "list_start"
