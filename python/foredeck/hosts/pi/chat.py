"""A session's chat as Markdown: its turns in order, with delimiter lines.

For people and for storage; a model sees messages, never this text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from foredeck.hosts.pi.messages import Message
from foredeck.model.documents import session_object_id
from foredeck.model.messages import load_message, unpack
from foredeck.store.protocol import Head, Store


def render_chat(store: Store, session: str, turns: int) -> str:
    """The first `turns` turns of a session, over all its branches, in the order of their making.

    `--- user`, `--- assistant`, `--- thinking` and other roles head a section; a tool call is one
    line: `--- toolcall @12 tool=bash args="ls -la" status=ok`.
    """
    ids = [f"turn:{session}:{number}" for number in range(1, turns + 1)]
    heads = store.heads(ids)
    calls = [call for id in ids if id in heads for call in heads[id].fields["toolcall_ids"]]
    chat = _Chat(store, _handles(store, session), store.heads(calls))
    lines = [line for id in ids if id in heads for line in chat.turn(heads[id])]
    return "".join(f"{line}\n" for line in lines)


def chat_fields(store: Store, session: str, turns: int) -> dict[str, Any]:
    """The first `turns` turns of a session as data: its chat as one logical object.

    `{"session_ref", "turn_count", "toolcall_refs", "turns": [{"id", "user_turn", "user",
    "assistant", "others", "assistant_meta", "toolcall_ids"}]}`, messages as the host gave them,
    None where a turn has none.
    """
    ids = [f"turn:{session}:{number}" for number in range(1, turns + 1)]
    heads = store.heads(ids)
    found = [_turn(store, heads[id]) for id in ids if id in heads]
    return {
        "session_ref": session_object_id(session),
        "turn_count": turns,
        "toolcall_refs": [call for turn in found for call in turn["toolcall_ids"]],
        "turns": found,
    }


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


def _handles(store: Store, session: str) -> dict[str, int]:
    members = store.query("member", {"session": session})
    return {head.fields["object"]: head.fields["ordinal"] for head in members}


class _Chat:
    def __init__(self, store: Store, handles: dict[str, int], calls: dict[str, Head]) -> None:
        self._store = store
        self._handles = handles
        self._calls = calls

    def turn(self, head: Head) -> Iterator[str]:
        fields = head.fields
        for address in (fields.get("user"), *fields["others"], fields.get("assistant")):
            if address is not None:
                yield from _message(load_message(address, self._store.blob))
        for id in fields["toolcall_ids"]:
            yield self._toolcall(id)

    def _toolcall(self, id: str) -> str:
        head = self._calls.get(id)
        ordinal = self._handles.get(id)
        name = id if ordinal is None else f"@{ordinal}"
        if head is None:
            return f"--- toolcall {name} (no result)"
        fields = head.fields
        args = json.dumps(fields.get("args_display") or "", ensure_ascii=False)
        status = fields.get("status")
        return f"--- toolcall {name} tool={fields.get('tool')} args={args} status={status}"


def _message(message: Message) -> Iterator[str]:
    role = message.get("role") or "message"
    content = message.get("content")
    if role == "assistant" and message.get("stopReason") in ("error", "aborted"):
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
