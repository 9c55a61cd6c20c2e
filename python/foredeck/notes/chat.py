"""Links in what people and models say in a chat, of many turns at once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from foredeck.model.canonical import decode_text, hash_text
from foredeck.model.documents import PASTE_CHARS, user_object_id
from foredeck.model.records import TurnDocument
from foredeck.notes.entries import PASTED
from foredeck.notes.markdown import parse_note
from foredeck.notes.parsed import MENTIONS, WIKILINK, Reference
from foredeck.store.protocol import Head, Store, portions

TURN = "turn"
"""The type of the documents that name a chat's messages."""

SPOKEN = frozenset({"user", "assistant"})
"""Roles whose texts are read: what people and models say. The output of a command or a
tool is not said, and summaries repeat what was."""

CHUNK = 200
"""Turns whose messages are held at once."""

_BRACKETS, _LONG = b"[[", b'"$text"'
_Text = str | bytes
"""A text of a message: bytes where it comes from a blob of its own."""
_Packed = str | dict[str, str]
"""A text as the message holds it: a long one is the mark that names its blob."""


@dataclass(frozen=True, slots=True)
class TurnLinks:
    """The links in the messages of one turn of a session, in the order in which they were said.

    `number` counts the session's turns from 1, those of all its branches.
    """

    session: str
    number: int
    references: list[Reference]


@dataclass(frozen=True, slots=True)
class _Said:
    """A message's texts, one to a line, and the one that is long, if there is just one."""

    text: str
    long: str | None


def links_of_turns(store: Store, turns: Sequence[Head]) -> Iterator[TurnLinks]:
    """The links of each turn, also of one without any. Messages that were erased have none."""
    for part in portions(turns, CHUNK):
        messages = _spoken(store, {a for turn in part for _, a in _messages(turn)})
        for turn in part:
            number = int(turn.id.rpartition(":")[2])
            found = [
                replace(reference, field=f"turns[{number}].{field}")
                for field, address in _messages(turn)
                for reference in _references(field, messages.get(address))
            ]
            yield TurnLinks(turn.view(TurnDocument).session, number, found)


def links_in(said: str) -> list[Reference]:
    """The wikilinks in what was said; an embedded one is no more than a mention here."""
    # Other links are left out: a chat lies in no folder from which their paths could lead.
    if WIKILINK.search(said) is None:
        return []
    wiki = [r for r in parse_note(said).references if r.style == "wiki"]
    return [replace(reference, relation=MENTIONS) for reference in wiki]


def _references(field: str, said: _Said | None) -> list[Reference]:
    """The links in a message; a long text of the user's is an object, and the last of them."""
    if said is None:
        return []
    links = links_in(said.text)
    if said.long is not None and field == "user":
        links.append(Reference(user_object_id(hash_text(said.long)), PASTED, style="id"))
    return links


def _messages(turn: Head) -> Iterator[tuple[str, str]]:
    """The messages of a turn by the field that names them, the oldest first."""
    fields = turn.fields
    for position, address in enumerate(fields.get("others") or ()):
        yield f"others[{position}]", address
    for name in ("user", "assistant"):
        if fields.get(name):
            yield name, fields[name]


def _spoken(store: Store, addresses: Iterable[str]) -> dict[str, _Said]:
    """What the messages say that may hold links, or one long text."""
    # A chat has thousands of messages and few links: packed messages are only searched for two
    # brackets, as bytes. Long texts lie in blobs of their own, fetched together and searched in the
    # same way. Only what holds a link is parsed as notes are.
    packed = {
        address: texts
        for address, data in store.blobs(addresses).items()
        if (_BRACKETS in data or _LONG in data) and (texts := _texts(data))
    }
    named = {text["$text"] for texts in packed.values() for text in texts if isinstance(text, dict)}
    long = store.blobs(named)
    found = {}
    for address, texts in packed.items():
        parts = [t if isinstance(t, str) else long.get(t["$text"], b"") for t in texts]
        if any(len(part) >= PASTE_CHARS or _may_link(part) for part in parts):
            decoded = [_decoded(part) for part in parts]
            pasted = [text for text in decoded if len(text) >= PASTE_CHARS]
            found[address] = _Said("\n".join(decoded), pasted[0] if len(pasted) == 1 else None)
    return found


def _texts(data: bytes) -> list[_Packed]:
    """The texts of a packed message that were said."""
    try:
        message = json.loads(decode_text(data))
    except (ValueError, RecursionError):
        return []
    if not isinstance(message, dict) or message.get("role") not in SPOKEN:
        return []
    content = message.get("content")
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    spoken = (b.get("text") for b in blocks if isinstance(b, dict) and b.get("type") == "text")
    return [text for text in spoken if isinstance(text, str) or _is_long(text)]


def _is_long(text: Any) -> TypeGuard[dict[str, str]]:
    return isinstance(text, dict) and isinstance(text.get("$text"), str)


def _may_link(text: _Text) -> bool:
    return _BRACKETS in text if isinstance(text, bytes) else "[[" in text


def _decoded(text: _Text) -> str:
    return decode_text(text) if isinstance(text, bytes) else text
