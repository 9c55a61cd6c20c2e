"""A session's chat as Markdown, for people; models never see it.

A fork's begins with its parent's turns, which stay the parent's documents.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from foredeck.context.messages.shape import UNSENT_STOPS, Message
from foredeck.context.state.call_log import CallLog, load_record, ordinal_of
from foredeck.model.documents import chat_id, session_object_id
from foredeck.model.identity import hash_text
from foredeck.model.messages import load_message, unpack
from foredeck.model.names import Slice
from foredeck.model.observations import CompactionDocument
from foredeck.model.records import TurnDocument, call_id, forgotten_id, turn_id
from foredeck.names import handles_in
from foredeck.store.protocol import Head
from foredeck.store.sessions import ancestry
from foredeck.store.store import Store


def render_chat(
    store: Store,
    session: str,
    turns: int,
    asked: Slice | None = None,
    handles: Mapping[str, int] | None = None,
) -> str:
    """Inherited turns, then the first `turns` own ones from all branches.

    A heading per role, `--- user`; a line per call: `--- toolcall @12 tool=bash args="ls -la"
    status=ok`, and for those within it `--- toolcall @11 in @12 ...`.
    """
    inherited = inherited_turns(store, session)
    heads = [*inherited.turns, *_own_turns(store, session, turns)]
    if asked is not None and asked.unit == "message":
        numbers = range(asked.first, min(asked.last, turns) + 1)
        own = store.heads(turn_id(session, number) for number in numbers)
        heads = [head for head in heads if head.id in own]
    elif asked is not None:
        heads = [head for head in heads if head.view(TurnDocument).user_turn in asked]
    calls = [call for head in heads for call in head.view(TurnDocument).toolcall_ids]
    parents = (head.view(TurnDocument).session for head in inherited.turns)
    nested = _nested(store, {session, *parents})
    handles = handles_in(store, session) if handles is None else handles
    chat = _Chat(store, handles, store.heads(calls), nested)
    lines = [line for head in heads for line in chat.turn(head)]
    if asked is None:
        lines = [*_missing(inherited), *lines]
    return "".join(f"{line}\n" for line in lines)


def chat_fields(store: Store, session: str, turns: int) -> dict[str, Any]:
    """The same turns as data.

    `{"session_ref", "turn_count", "inherited", "missing", "toolcall_refs", "turns": [{"id",
    "user_turn", "user", "assistant", "others", "assistant_meta", "toolcall_ids"}]}`; messages are
    the host's, or None. `missing` names an ancestor that is not stored.
    """
    inherited = inherited_turns(store, session)
    heads = [*inherited.turns, *_own_turns(store, session, turns)]
    records = [_turn(store, head) for head in heads]
    return {
        "session_ref": session_object_id(session),
        "turn_count": len(records),
        "inherited": len(inherited.turns),
        "missing": inherited.gone,
        "toolcall_refs": [call for turn in records for call in turn["toolcall_ids"]],
        "turns": records,
    }


class Inherited(NamedTuple):
    """Turns a chat begins with. `gone`: the ancestor that is not stored; `forgotten`: erased by the
    user."""

    turns: tuple[Head, ...] = ()
    gone: str | None = None
    forgotten: bool = False


def inherited_turns(store: Store, session: str) -> Inherited:
    """A fork's inherited turns, oldest first."""
    ancestors, gone = _ancestors(store, session)
    if not ancestors and gone is None:
        return Inherited()
    # What the list begins with that the session's first call has continued.
    first = _listed(store, call_id(session, 1))
    path = set(addresses_back(store, first, [session, *ancestors]))
    path -= {head.fields.get("assistant") for head in turns_of_session(store, session)}
    heads: dict[str, Head] = {}
    for ancestor in reversed(ancestors):
        for head in turns_of_session(store, ancestor):
            address = head.fields.get("assistant")
            if address in path:
                heads.setdefault(address, head)
    if gone is None or not path:
        return Inherited(tuple(heads.values()))
    return Inherited(tuple(heads.values()), gone, store.head(forgotten_id(gone)) is not None)


def turns_of_session(store: Store, session: str) -> list[Head]:
    """A session's own turns on all branches, oldest first."""
    return sorted(store.query("turn", {"session": session}), key=lambda head: ordinal_of(head.id))


def addresses_back(
    store: Store,
    messages: Sequence[str],
    lineage: Sequence[str],
    blob: Callable[[str], bytes] | None = None,
) -> Iterator[str]:
    """Addresses of a list's messages back to the very first, through the lists that summaries
    replaced.

    `lineage`: ids of sessions to search.
    """
    # A damaged store may name a call twice: that would never end.
    visited: set[str] = set()
    while messages:
        yield from messages
        id = _compacted_at(store, messages[0], lineage, blob or store.blob)
        messages = [] if id is None or id in visited else _listed(store, id)
        visited.add(id or "")


def _own_turns(store: Store, session: str, turns: int) -> list[Head]:
    ids = [turn_id(session, number) for number in range(1, turns + 1)]
    heads = store.heads(ids)
    return [heads[id] for id in ids if id in heads]


def _missing(inherited: Inherited) -> Iterator[str]:
    if inherited.gone is not None:
        why = "was forgotten" if inherited.forgotten else "is not in this store"
        yield f"--- the turns before are those of session {inherited.gone}, which {why}"


def _turn(store: Store, head: Head) -> dict[str, Any]:
    fields = head.fields
    extras = unpack(fields.get("extras") or {}, store.blob)

    def message(address: str | None) -> Message | None:
        if address is None:
            return None
        return {**load_message(address, store.blob), **extras.get(address, {})}

    return {
        "id": head.id,
        "user_turn": fields["user_turn"],
        "user": message(fields.get("user")),
        "assistant": message(fields.get("assistant")),
        "others": [message(address) for address in fields["others"]],
        "assistant_meta": fields.get("assistant_meta") or {},
        "toolcall_ids": fields["toolcall_ids"],
    }


def _nested(store: Store, sessions: Collection[str]) -> dict[str, list[Head]]:
    heads = [h for id in sessions for h in store.query("toolcall", {"chat_ref": chat_id(id)})]
    calls: dict[str, list[Head]] = {}
    for head in sorted(heads, key=lambda head: head.fields.get("position") or 0):
        if parent := head.fields.get("parent_ref"):
            calls.setdefault(parent, []).append(head)
    return calls


class _Chat(NamedTuple):
    store: Store
    handles: Mapping[str, int]
    calls: Mapping[str, Head]
    nested: Mapping[str, list[Head]]

    def turn(self, head: Head) -> Iterator[str]:
        fields = head.fields
        for address in (fields.get("user"), *fields["others"], fields.get("assistant")):
            if address is not None:
                yield from _message(load_message(address, self.store.blob))
        for id in fields["toolcall_ids"]:
            call = self.calls.get(id)
            if call is None:
                yield f"--- toolcall {self._name(id)} (no result)"
            else:
                yield from self._toolcall(call, self._name(id))

    def _name(self, id: str) -> str:
        ordinal = self.handles.get(id)
        return id if ordinal is None else f"@{ordinal}"

    def _toolcall(self, head: Head, name: str) -> Iterator[str]:
        fields = head.fields
        args = json.dumps(fields.get("args_display") or "", ensure_ascii=False)
        status = fields.get("status")
        yield f"--- toolcall {name} tool={fields.get('tool')} args={args} status={status}"
        for nested in self.nested.get(head.id, ()):
            yield from self._toolcall(nested, f"{self._name(nested.id)} in {self._name(head.id)}")


def _message(message: Message) -> Iterator[str]:
    role = message.get("role") or "message"
    content = message.get("content")
    if role == "assistant" and message.get("stopReason") in UNSENT_STOPS:
        role = f"assistant ({message['stopReason']})"
    if isinstance(content, list):
        yield from _blocks(role, [block for block in content if isinstance(block, dict)])
        return
    texts = [content, *(message.get(name) for name in ("command", "output", "summary"))]
    yield f"--- {role}"
    yield "\n".join(text for text in texts if isinstance(text, str))


def _blocks(role: str, blocks: list[dict[str, Any]]) -> Iterator[str]:
    heading = None
    for block in blocks:
        kind = block.get("type")
        if kind == "toolCall":
            continue
        kind_heading = "thinking" if kind == "thinking" else role
        if kind_heading != heading:
            heading = kind_heading
            yield f"--- {heading}"
        yield _block_text(block)


def _block_text(block: dict[str, Any]) -> str:
    match block.get("type"):
        case "text":
            return str(block.get("text") or "")
        case "thinking":
            return str(block.get("thinking") or "") or "(redacted)"
        case "image":
            return f"(image {block.get('mimeType')})"
    return json.dumps(block, ensure_ascii=False)


def _ancestors(store: Store, session: str) -> tuple[list[str], str | None]:
    _, *ids = ancestry(store, session)
    if ids and store.head(session_object_id(ids[-1])) is None:
        return ids[:-1], ids[-1]
    return ids, None


def _listed(store: Store, call: str) -> list[str]:
    keys = CallLog().replay(call, partial(load_record, store)).keys
    return [key.address for key in keys]


def _compacted_at(
    store: Store, address: str, lineage: Sequence[str], blob: Callable[[str], bytes]
) -> str | None:
    summary = load_message(address, blob).get("summary")
    if not isinstance(summary, str):
        return None
    digest = hash_text(summary)
    for session in lineage:
        for head in store.query("compaction", {"session": session}):
            if head.fields.get("text_hash") == digest:
                return call_id(session, head.view(CompactionDocument).call)
    return None
