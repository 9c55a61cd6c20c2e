"""One prompt as the model saw it, and what changed since the one before."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from foredeck.lookup.prompts import Prompt, prompt_at, prompts_at
from foredeck.lookup.sessions import checked_call, count_calls
from foredeck.model.call_values import OpRow
from foredeck.model.calls import CallRecord
from foredeck.model.records import MemberDocument, call_id, member_id
from foredeck.store.protocol import Store
from foredeck.timeline.differences import hunks_of
from foredeck.ui.charts import folded_handles, tokens_of, why
from foredeck.ui.pages import WebPage
from foredeck.ui.views.sessions import found_session, title_of

LONG = 6_000
"""A longer text is shown with its beginning; the rest opens."""

_FORMS = {
    "full": "in full",
    "same": "a line: the same as above",
    "reference": "folded to a line",
    "note": "a tool's short answer",
    "folded": "shortened",
    "observed": "what was noted of it",
}


def prompt_page(store: Store, name: str, call: int) -> WebPage:
    """The prompt of a call, byte for byte. Raises `NotFound`."""
    session, last = _found(store, name, call)
    prompt = prompt_at(store, session, call)
    record = prompt.record
    data = {
        **_place(store, session, record, last),
        "system": [_text_of(message.get("content")) for message in prompt.system],
        "tools": [_tool(tool) for tool in prompt.tools],
        "messages": list(_messages(prompt)),
        "rendered": _rendered(store, session, record),
        "left_out": sum(1 for row in record.ops if row.form == "omitted"),
    }
    return WebPage("prompt.html", f"Call {call}", data, "sessions")


def prompt_diff_page(store: Store, name: str, call: int, base: int | None) -> WebPage:
    """What a prompt has that `base` (default: the call that it continues) had not, and the reverse.

    Raises `NotFound`.
    """
    session, last = _found(store, name, call, base or call)
    before = base or _parent_call(store, session, call)
    *old, prompt = prompts_at(store, session, *([before] if before else []), call)
    data: dict[str, Any] = {**_place(store, session, prompt.record, last), "base": before}
    if before is None:
        data |= {
            "same": 0,
            "changes": [_added(number, m) for number, m in enumerate(prompt.messages, 1)],
        }
    else:
        data |= _compared(old[0], prompt)
    return WebPage("prompt_diff.html", f"Call {call}, changes", data, "sessions")


def _found(store: Store, name: str, *calls: int) -> tuple[str, int]:
    """The session, and the number of its last call. Raises `NotFound`."""
    session, _ = found_session(store, name)
    for call in calls:
        checked_call(store, session, call)
    return session, count_calls(store, session)


def _place(store: Store, session: str, record: CallRecord, last: int) -> dict[str, Any]:
    stats = record.stats
    return {
        "session": session,
        "title": title_of(store, session),
        "call": record.ordinal,
        "calls": last,
        "time_ms": record.time_ms,
        "model": record.model.name,
        "layout": record.layout,
        "policy": record.policy,
        "decision": record.decision.to_record(),
        "why": why(record.decision),
        "reasoning": record.lost.sum.text,
        "folded_now": folded_handles(record),
        "tokens_sent": tokens_of(record, stats.chars_sent),
        "tokens_plain": tokens_of(record, stats.chars_host),
        "stats": stats._asdict(),
        "cache": record.cache.to_record(),
    }


def _messages(prompt: Prompt) -> Iterator[dict[str, Any]]:
    for number, message in enumerate(prompt.messages):
        whose = "foredeck" if number in prompt.inserted else "host"
        yield {
            "number": number + 1,
            "role": str(message.get("role")),
            "tool": message.get("toolName"),
            "failed": bool(message.get("isError")),
            "whose": whose,
            "edited": number in prompt.edited,
            "blocks": list(_blocks(message)),
        }


def _blocks(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    content = message.get("content")
    if content is None:
        for name in ("command", "output", "summary"):
            if isinstance(message.get(name), str):
                yield _block(name, message[name])
    elif isinstance(content, str):
        yield _block("text", content)
    else:
        for block in content:
            yield _content_block(block)


def _content_block(block: Any) -> dict[str, Any]:
    if not isinstance(block, dict):
        return _block("text", str(block))
    match block.get("type"):
        case "text":
            return _block("text", str(block.get("text") or ""))
        case "thinking":
            sealed = " (sealed)" if block.get("thinkingSignature") else ""
            return _block("thinking" + sealed, str(block.get("thinking") or ""))
        case "toolCall":
            arguments = json.dumps(block.get("arguments"), indent=2, ensure_ascii=False)
            return _block(f"calls {block.get('name')}", arguments)
        case "image":
            return _block("image", f"({block.get('mimeType') or 'image'})")
    return _block(str(block.get("type")), json.dumps(block, indent=2, ensure_ascii=False))


def _block(kind: str, text: str) -> dict[str, Any]:
    return {"kind": kind, "text": text, "long": len(text) > LONG}


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": str(tool.get("name")),
        "description": str(tool.get("description") or ""),
        "parameters": json.dumps(tool.get("parameters"), indent=2, ensure_ascii=False),
    }


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n\n".join(str(block.get("text") or "") for block in blocks if isinstance(block, dict))


def _rendered(store: Store, session: str, record: CallRecord) -> list[dict[str, Any]]:
    """What was written new or anew for this call, by message: mostly results, in full or folded."""
    rows = (row for row in record.ops if row.form not in ("host", "omitted"))
    return [_row(store, session, row) for row in rows]


def _row(store: Store, session: str, row: OpRow) -> dict[str, Any]:
    object_id = None
    if row.subject is not None:
        member = store.head(member_id(session, row.subject))
        object_id = None if member is None else member.view(MemberDocument).object
    return {
        "message": row.message + 1,
        "form": row.form,
        "words": _FORMS.get(row.form, row.form),
        "handle": None if row.subject is None else f"@{row.subject}",
        "object": object_id,
        "version": row.version,
        "pieces": len(row.folded),
    }


def _parent_call(store: Store, session: str, call: int) -> int | None:
    head = store.head(call_id(session, call))
    record = None if head is None else CallRecord(head.fields)
    parent = store.head(record.parent) if record and record.parent else None
    if parent is None or parent.id != call_id(session, CallRecord(parent.fields).ordinal):
        return None
    return CallRecord(parent.fields).ordinal


def _compared(old: Prompt, new: Prompt) -> dict[str, Any]:
    least = min(len(old.messages), len(new.messages))
    differ = (n for n in range(least) if old.messages[n] != new.messages[n])
    same = next(differ, least)
    # As texts, since dicts cannot be hashed.
    before, after = (
        [json.dumps(m, sort_keys=True, ensure_ascii=False) for m in prompt.messages[same:]]
        for prompt in (old, new)
    )
    changes: list[dict[str, Any]] = []
    # Without autojunk: of two hundred messages and more it would pass over frequent ones.
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        olds, news = old.messages[same + i1 : same + i2], new.messages[same + j1 : same + j2]
        if tag != "equal":
            changes += _pairs(olds, news, same + j1 + 1)
    return {"same": same, "of": len(new.messages), "changes": changes}


def _pairs(olds: Sequence[Any], news: Sequence[Any], number: int) -> Iterator[dict[str, Any]]:
    """Messages that replace each other one by one; what is left over came or went."""
    both = min(len(olds), len(news))
    for at in range(both):
        yield _changed(number + at, olds[at], news[at])
    for at, message in enumerate(olds[both:]):
        yield {"what": "gone", "number": number + both + at, **_lines(message, "-")}
    for at, message in enumerate(news[both:]):
        yield _added(number + both + at, message)


def _changed(number: int, old: Any, new: Any) -> dict[str, Any]:
    lines = hunks_of(_plain(old), _plain(new))
    return {"what": "changed", "number": number, "role": str(new.get("role")), "lines": lines}


def _added(number: int, message: Any) -> dict[str, Any]:
    return {"what": "new", "number": number, **_lines(message, "+")}


def _lines(message: Any, sign: str) -> dict[str, Any]:
    lines = [sign + line for line in _plain(message).split("\n")]
    return {"role": str(message.get("role")), "lines": lines}


def _plain(message: Any) -> str:
    return "\n".join(
        f"{b['kind']}: {b['text']}" if b["kind"] != "text" else b["text"] for b in _blocks(message)
    )
