"""The shape in which messages are stored, whichever agent they come from; items made of them, and
what a provider would refuse in a list of them.

It is the shape of Pi's messages, so those need no conversion:

    {"role": "user", "content": [...], "timestamp": MS}
    {"role": "assistant", "content": [...], "provider", "model", "api", "stopReason", "usage", ...}
    {"role": "toolResult", "toolCallId", "toolName", "content": [...], "isError", "details"}
    {"role": "bashExecution", "command", "output", ...}     a command that the user ran
    {"role": "custom", "customType", "content": [...], "display"}     not typed by the user
    {"role": "branchSummary", "summary", "fromId"}
    {"role": "compactionSummary", "summary"}

Content is a text, or blocks as in `items.py`; an image block is `{"type": "image", "data",
"mimeType"}`. `timestamp` is in milliseconds since 1970.

Only fields that decide what the model sees, or when, make up a message's identity and stored
form. All other fields are stored beside it, once, with the turn or the tool call that the message
belongs to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from foredeck.context.messages.items import (
    Block,
    Item,
    NestedUse,
    PromptUsage,
    ToolUse,
    message_text,
)
from foredeck.model.messages import (
    KnownMessages,
    MessageKey,
    MessageKind,
    answered_by,
    store_message,
    text_in,
)
from foredeck.model.own_tools import OWN_TOOLS

Message = dict[str, Any]

_COMMON = ("role", "timestamp")
_FIELDS: dict[str, tuple[str, ...]] = {
    "user": ("content",),
    "assistant": ("content", "api", "provider", "model", "stopReason"),
    "toolResult": ("content", "toolCallId", "toolName", "isError"),
    "bashExecution": (
        "command",
        "output",
        "exitCode",
        "cancelled",
        "truncated",
        "fullOutputPath",
        "excludeFromContext",
    ),
    "custom": ("customType", "content", "display"),
    "branchSummary": ("summary", "fromId"),
    "compactionSummary": ("summary", "tokensBefore"),
}
_META = (
    *("api", "provider", "model", "usage", "stopReason", "timestamp", "errorMessage"),
    *("responseId", "responseModel", "rawStopReason", "endTurn", "providerThinkingLevel"),
)
_BESIDE: dict[str, tuple[str, ...]] = {"assistant": _META, "toolResult": ("details",)}
"""Stored under names of their own, with the turn or call."""
_NAMED = {
    role: frozenset((*_COMMON, *fields, *_BESIDE.get(role, ()))) for role, fields in _FIELDS.items()
}
UNSENT_STOPS = frozenset({"error", "aborted"})
"""Hosts leave out answers with these stop reasons, calls and all."""
_PLAIN_SIGNATURES = frozenset({"reasoning_content", "reasoning", "reasoning_text"})
"""Names of fields that OpenAI-compatible adapters keep as a "signature"."""


def identifying_fields(message: Message) -> Message:
    """Fields that identify a message; all of them for an unknown role."""
    # Usage figures and the like may differ between a live message and the one read back from the
    # host's session file, and must not make a known message look new.
    fields = _FIELDS.get(message.get("role") or "")
    if fields is None:
        return message
    return {name: message[name] for name in (*_COMMON, *fields) if message.get(name) is not None}


def to_item(
    message: Message, entry: str | None, blobs: dict[str, bytes], known: KnownMessages | None = None
) -> Item:
    """`blobs` receives what must be stored to show it again."""
    store = store_message if known is None else known.store
    key = MessageKey(entry, store(identifying_fields(message), blobs))
    role, time_ms = message.get("role") or "", time_of(message)
    match role:
        case "user":
            item = Item(key, "user", _blocks(message.get("content")), time_ms)
        case "assistant":
            item = _assistant(message, key, time_ms)
        case "toolResult":
            item = _result(message, key, time_ms)
        case _:
            item = Item(key, _kind(message), _shown(message), time_ms)
    own_fields = _NAMED.get(role, message.keys())
    item.extras = {
        name: v for name, v in message.items() if name not in own_fields and v is not None
    }
    return item


def _assistant(message: Message, key: MessageKey, time_ms: int) -> Item:
    blocks = _blocks(message.get("content"))
    return Item(
        key,
        "assistant",
        blocks,
        time_ms,
        calls=[
            ToolUse(str(block.get("id") or ""), str(block.get("name") or ""), _object(block))
            for block in blocks
            if block.get("type") == "toolCall"
        ],
        signed=any(map(is_signed, blocks)),
        unsent=str(message.get("stopReason")) in UNSENT_STOPS,
        meta={name: message[name] for name in _META if message.get(name) is not None},
        usage=to_usage(message.get("usage")),
        model=f"{message.get('provider') or ''}/{message.get('model') or ''}",
    )


def to_usage(usage: Any) -> PromptUsage | None:
    """The usage of an assistant message; None if nothing was counted."""
    if not isinstance(usage, dict):
        return None
    values = [usage.get(name) for name in ("input", "cacheRead", "cacheWrite")]
    counts = [int(n) if isinstance(n, int | float) and n > 0 else 0 for n in values]
    return PromptUsage(*counts) if any(counts) else None


def _result(message: Message, key: MessageKey, time_ms: int) -> Item:
    blocks = _blocks(message.get("content"))
    return Item(
        key,
        "result",
        blocks,
        time_ms,
        call_id=str(message.get("toolCallId") or ""),
        tool=str(message.get("toolName") or ""),
        failed=bool(message.get("isError")),
        details=message.get("details"),
        nested=_nested(message),
        text=text_in(blocks),
        took_ms=took_ms(message),
    )


def took_ms(message: Message) -> int | None:
    """How long an answer or a tool took, where the host's message says so."""
    took = message.get("durationMs")
    return int(took) if isinstance(took, int | float) and took >= 0 else None


def _nested(message: Message) -> list[NestedUse]:
    """Pi lists 256, and omits arguments over 8 KiB a call or 32 KiB a script."""
    # A `read` inside a tool of ours only asks whether it may: its result goes nowhere.
    listed = None if message.get("toolName") in OWN_TOOLS else message.get("nestedCalls")
    calls = listed.get("calls") if isinstance(listed, dict) else None
    return [
        NestedUse(
            call["id"], str(call.get("name") or ""), _object(call), call.get("status") != "ok"
        )
        for call in (calls if isinstance(calls, list) else ())
        if isinstance(call, dict) and isinstance(call.get("id"), str)
    ]


def is_signed(block: Block) -> bool:
    """Whether a block is sealed reasoning."""
    if block.get("thoughtSignature"):
        return True
    if block.get("type") != "thinking":
        return False
    signature = block.get("thinkingSignature")
    return bool(block.get("redacted")) or bool(signature and signature not in _PLAIN_SIGNATURES)


def seal_of(block: Block) -> str | None:
    """What identifies sealed reasoning, in a message or in a request: its signature, or its id."""
    seal = block.get("thinkingSignature") or block.get("signature") or block.get("data")
    if not isinstance(seal, str) or not seal.startswith("{"):
        return seal if isinstance(seal, str) else None
    # Of the Responses API a host keeps the whole item.
    try:
        return str(json.loads(seal).get("id"))
    except ValueError:
        return None


def _kind(message: Message) -> MessageKind:
    if message.get("role") == "bashExecution":
        return "opaque" if message.get("excludeFromContext") else "context"
    return "context" if message.get("role") in _FIELDS else "opaque"


def _shown(message: Message) -> list[Block]:
    if "content" in message:
        return _blocks(message["content"])
    texts = (message.get("command"), message.get("output"), message.get("summary"))
    return [{"type": "text", "text": "\n".join(t for t in texts if isinstance(t, str))}]


def _blocks(content: Any) -> list[Block]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, list):
        return [block for block in content if isinstance(block, dict)]
    return []


def _object(block: Block) -> dict[str, Any]:
    arguments = block.get("arguments")
    return arguments if isinstance(arguments, dict) else {}


def time_of(message: Message) -> int:
    """Milliseconds since 1970; 0 if unknown."""
    value = message.get("timestamp")
    return int(value) if isinstance(value, int | float) else 0


SENT_ROLES = frozenset(_FIELDS)
"""Hosts leave other roles out."""


def find_faults(messages: Sequence[Message]) -> list[str]:
    """What a provider would refuse; aborted and failed answers are skipped."""
    faults: list[str] = []
    pending: list[tuple[str, int]] = []
    has_begun = False
    for index, message in enumerate(messages):
        role = message.get("role")
        if role not in SENT_ROLES or message.get("excludeFromContext"):
            continue
        blocks = _blocks(message.get("content"))
        if any("keep" in block for block in blocks):
            faults.append(f"message {index}: an edit was not applied")
        if role == "toolResult":
            place = answered_by([id for id, _ in pending], message.get("toolCallId") or "")
            if place is None:
                faults.append(f"message {index}: a result without its call")
            else:
                pending.pop(place)
            continue
        faults.extend(f"message {at}: call {id} has no result" for id, at in pending)
        pending = []
        if role == "assistant":
            if message.get("stopReason") in UNSENT_STOPS:
                continue
            if not has_begun:
                faults.append(f"message {index}: the list begins with an answer")
            calls = (block for block in blocks if block.get("type") == "toolCall")
            pending = [(call.get("id") or "", index) for call in calls]
        has_begun = True
    faults.extend(f"message {at}: call {id} has no result" for id, at in pending)
    if not has_begun:
        faults.append("the list is empty")
    return faults


def sections_as_text(messages: list[Any]) -> list[Message]:
    """`content` as sent, without `sections`."""
    # A host may keep the prompt in named sections whose order counts: the leading message declares
    # them, later ones replace or remove them. An object's order does not survive in the store, so
    # the sections are written out as text before anything is kept.
    objects = [message for message in messages if isinstance(message, dict)]
    return [_with_text(message, leading=n == 0) for n, message in enumerate(objects)]


def tools_declared(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """The tools in force after these system messages."""
    tools: dict[Any, dict[str, Any]] = {}
    for message in messages:
        for gone in _objects_in(message, "toolsRemoved"):
            tools.pop(gone.get("name"), None)
        for tool in _objects_in(message, "toolsAdded"):
            tools[tool.get("name")] = {
                name: tool.get(name) for name in ("name", "description", "parameters")
            }
    return [*tools.values()]


def _objects_in(message: Message, name: str) -> list[dict[str, Any]]:
    listed = message.get(name)
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def _with_text(message: Message, *, leading: bool) -> Message:
    sections = message.get("sections")
    pairs = sections.items() if isinstance(sections, dict) else ()
    texts = [message_text(message)]
    texts += [_section(name, text, leading=leading) for name, text in pairs]
    rest = {name: value for name, value in message.items() if name != "sections"}
    return {**rest, "content": "\n\n".join(text for text in texts if text)}


def _section(name: str, text: Any, *, leading: bool) -> str:
    if leading:
        return text if isinstance(text, str) else ""
    if text is None:
        return f'Removed system prompt section "{name}".'
    return f'Updated system prompt section "{name}":\n\n{text}'
