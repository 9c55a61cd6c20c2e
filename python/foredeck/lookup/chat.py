"""A session's chat as Markdown: its turns in order, with delimiter lines.

For people and for storage; a model sees messages, never this text.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from foredeck.context.messages.shape import UNSENT_STOPS, Message
from foredeck.lookup.inherited import Inherited, inherited_turns
from foredeck.model.documents import chat_id, session_object_id
from foredeck.model.messages import load_message, unpack
from foredeck.model.places import Slice
from foredeck.model.records import TurnDocument, turn_id
from foredeck.names.finding import handles_in
from foredeck.store.protocol import Head, Store


def render_chat(
    store: Store,
    session: str,
    turns: int,
    asked: Slice | None = None,
    handles: Mapping[str, int] | None = None,
) -> str:
    """What a session inherited as a fork, then the first `turns` turns of its own, over all its
    branches, in the order of their making. `asked`: only what belongs to these turns of the user,
    or these messages, which are numbered as the session's own turns are. `handles`: by object,
    those of the session that reads it, where that is another one.

    `--- user`, `--- assistant`, `--- thinking` and other roles head a section; a tool call is one
    line: `--- toolcall @12 tool=bash args="ls -la" status=ok`. Those that it has made itself follow
    it, as `--- toolcall @11 in @12 ...`.
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
    """The inherited and the first `turns` own turns of a session as data: its chat as one object.

    `{"session_ref", "turn_count", "inherited", "missing", "toolcall_refs", "turns": [{"id",
    "user_turn", "user", "assistant", "others", "assistant_meta", "toolcall_ids"}]}`, messages as
    the host gave them, None where a turn has none. `inherited`: how many turns are those of a
    session that this one was forked from; `missing`: such a session whose turns are not stored.
    """
    inherited = inherited_turns(store, session)
    heads = [*inherited.turns, *_own_turns(store, session, turns)]
    found = [_turn(store, head) for head in heads]
    return {
        "session_ref": session_object_id(session),
        "turn_count": len(found),
        "inherited": len(inherited.turns),
        "missing": inherited.gone,
        "toolcall_refs": [call for turn in found for call in turn["toolcall_ids"]],
        "turns": found,
    }


def _own_turns(store: Store, session: str, turns: int) -> list[Head]:
    ids = [turn_id(session, number) for number in range(1, turns + 1)]
    heads = store.heads(ids)
    return [heads[id] for id in ids if id in heads]


def _missing(inherited: Inherited) -> Iterator[str]:
    """A line in place of turns that cannot be shown."""
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
    """The calls that ran inside others, by the id of the call, in their order."""
    heads = [h for id in sessions for h in store.query("toolcall", {"chat_ref": chat_id(id)})]
    found: dict[str, list[Head]] = {}
    for head in sorted(heads, key=lambda head: head.fields.get("position") or 0):
        if parent := head.fields.get("parent_ref"):
            found.setdefault(parent, []).append(head)
    return found


class _Chat:
    def __init__(
        self,
        store: Store,
        handles: Mapping[str, int],
        calls: dict[str, Head],
        nested: dict[str, list[Head]],
    ) -> None:
        self._store = store
        self._handles = handles
        self._calls = calls
        self._nested = nested

    def turn(self, head: Head) -> Iterator[str]:
        fields = head.fields
        for address in (fields.get("user"), *fields["others"], fields.get("assistant")):
            if address is not None:
                yield from _message(load_message(address, self._store.blob))
        for id in fields["toolcall_ids"]:
            call = self._calls.get(id)
            if call is None:
                yield f"--- toolcall {self._name(id)} (no result)"
            else:
                yield from self._toolcall(call, self._name(id))

    def _name(self, id: str) -> str:
        ordinal = self._handles.get(id)
        return id if ordinal is None else f"@{ordinal}"

    def _toolcall(self, head: Head, name: str) -> Iterator[str]:
        """The line of a call, and the lines of those that it made."""
        fields = head.fields
        args = json.dumps(fields.get("args_display") or "", ensure_ascii=False)
        status = fields.get("status")
        yield f"--- toolcall {name} tool={fields.get('tool')} args={args} status={status}"
        for nested in self._nested.get(head.id, ()):
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
    """A heading wherever the kind of what is said changes; calls have lines of their own."""
    heading = None
    for block in blocks:
        kind = block.get("type")
        if kind == "toolCall":
            continue
        wanted = "thinking" if kind == "thinking" else role
        if wanted != heading:
            heading = wanted
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
