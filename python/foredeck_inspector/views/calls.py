"""One call: the prompt as the model saw it, what in it is new, and why."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from typing import Any

from foredeck.context.state.gauge import weighed
from foredeck.lookup.prompts import Prompt
from foredeck.lookup.sessions import checked_call, count_calls
from foredeck.model.call_values import OpRow
from foredeck.model.calls import CallRecord
from foredeck.model.figures import counted
from foredeck.model.records import MemberDocument, call_id, member_id
from foredeck.store.protocol import LocalStore, Store
from foredeck.timeline.differences import hunks_of
from foredeck_inspector.book import BookedCall, folded_handles, why
from foredeck_inspector.pages import WebPage, link
from foredeck_inspector.tables import Column, Row, Table
from foredeck_inspector.views.sessions import found_session, title_of
from foredeck_inspector.work import Work

_FORMS = {
    "full": "in full",
    "same": "a line: the same as above",
    "reference": "folded to a line",
    "note": "a tool's short answer",
    "folded": "shortened",
    "observed": "what was noted of it",
}
_WRITTEN = (
    Column("message", "Message", "count", link="place"),
    Column("words", "As"),
    Column("handle", "Object", link="address"),
)
MOST_CHARS = 150_000
"""Of a prompt shown whole unasked."""
_SUMMARY_CHARS = 140


def call_page(
    store: LocalStore, work: Work, name: str, call: int, asked: Mapping[str, str], base: int | None
) -> WebPage:
    """A call's prompt beside that of `base` (default: its parent). Raises `NotFound`."""
    session, _ = found_session(store, name)
    with work.prompts(session, store) as prompts:
        for number in (call, base or call):
            checked_call(prompts, session, number)
        last = count_calls(prompts, session)
        before = base or _parent_call(prompts, session, call)
        wanted = [*([before] if before else []), call]
        job = work.prompts_at(session, wanted)
        if job.result is None:
            waits = {"job": job.to_json()}
            return WebPage("waiting.html", f"Call {call}", waits, "overview", renews=1)
        *old, prompt = job.result
        record = prompt.record
        messages = list(_compared(old[0] if old else None, prompt))
        rows = [_written(prompts, session, row) for row in record.ops if row.form not in _UNSEEN]
    states = [message["state"] for message in messages]
    size = sum(len(block["text"]) for message in messages for block in message["blocks"])
    shows_all = bool(asked.get("all"))
    is_short = shows_all or size <= MOST_CHARS
    for message in messages:
        if not is_short and message["state"] == "same":
            message["blocks"] = []
    book, _ = work.book(session)
    booked = book.calls[call - 1] if len(book.calls) >= call else None
    data = {
        **_described(store, session, record, last),
        **_answered(booked),
        "base": before,
        "system": [_text_of(message.get("content")) for message in prompt.system],
        "tools": [_tool(tool) for tool in prompt.tools],
        "messages": messages,
        "runs": [
            {"is_same": state == "same", "messages": list(run)}
            for state, run in groupby(messages, key=lambda message: message["state"])
        ],
        "all": shows_all,
        "shortened": not is_short,
        "counts": {state: states.count(state) for state in ("same", "new", "changed", "gone")},
        "written": Table("written", "What was written for this call", _WRITTEN, rows, 40).arranged(
            asked
        ),
        "left_out": sum(1 for row in record.ops if row.form == "omitted"),
    }
    return WebPage("call.html", f"Call {call}", data, "overview")


_UNSEEN = ("host", "omitted")


def _described(store: Store, session: str, record: CallRecord, last: int) -> dict[str, Any]:
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
        "weighed": weighed(record),
        "why": why(record.decision),
        "lost": record.lost.sum.text,
        "folded_now": folded_handles(record),
        "stats": stats._asdict(),
        "cache": record.cache.to_record(),
    }


def _answered(call: BookedCall | None) -> dict[str, Any]:
    answer = None if call is None else call.answer
    return {
        "tokens_sent": None if call is None else call.sent,
        "tokens_plain": None if call is None else call.plain,
        "cost": None if call is None else call.cost,
        "cost_tokens": None if call is None or call.cost is not None else round(call.cost_tokens),
        "model_ms": None if answer is None else answer.model_ms,
        "tools_ms": None if answer is None else answer.tools_ms,
        "answer": None if answer is None else answer.number,
        "ran": [] if answer is None else [tool.name for tool in answer.tools],
    }


def _compared(old: Prompt | None, new: Prompt) -> Iterator[dict[str, Any]]:
    before = [] if old is None else old.messages
    least = min(len(before), len(new.messages))
    differ = (n for n in range(least) if before[n] != new.messages[n])
    same = next(differ, least)
    for number in range(same):
        yield _message(new, number, "same")
    # As texts, since dicts cannot be hashed.
    olds, news = (
        [json.dumps(m, sort_keys=True, ensure_ascii=False) for m in messages[same:]]
        for messages in (before, new.messages)
    )
    # Without autojunk: of two hundred messages and more it would pass over frequent ones.
    matcher = SequenceMatcher(None, olds, news, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            yield from (_message(new, same + at, "same") for at in range(j1, j2))
            continue
        # Messages that replace each other one by one; what is left over came or went.
        both = min(i2 - i1, j2 - j1)
        for at in range(both):
            lines = hunks_of(_plain(before[same + i1 + at]), _plain(new.messages[same + j1 + at]))
            yield {**_message(new, same + j1 + at, "changed"), "lines": lines}
        for at in range(i1 + both, i2):
            yield _gone(before[same + at])
        for at in range(j1 + both, j2):
            yield _message(new, same + at, "new")


def _message(prompt: Prompt, number: int, state: str) -> dict[str, Any]:
    message = prompt.messages[number]
    blocks = list(_blocks(message))
    return {
        "number": number + 1,
        "state": state,
        "role": str(message.get("role")),
        "tool": message.get("toolName"),
        "failed": bool(message.get("isError")),
        "whose": "foredeck" if number in prompt.inserted else "host",
        "edited": number in prompt.edited,
        "summary": _summary(blocks),
        "blocks": blocks,
        "lines": None,
    }


def _gone(message: Mapping[str, Any]) -> dict[str, Any]:
    blocks = list(_blocks(message))
    return {
        "number": None,
        "state": "gone",
        "role": str(message.get("role")),
        "tool": message.get("toolName"),
        "failed": False,
        "whose": "host",
        "edited": False,
        "summary": _summary(blocks),
        "blocks": [],
        "lines": [f"-{line}" for line in _plain(message).split("\n")],
    }


def _summary(blocks: Sequence[Mapping[str, Any]]) -> str:
    words = [f"{b['kind']} {b['text'][:_SUMMARY_CHARS]}" if b["kind"] != "text" else
             str(b["text"][:_SUMMARY_CHARS]) for b in blocks]  # fmt: skip
    return " ".join(" · ".join(words).split())[:_SUMMARY_CHARS]


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
    return {"kind": kind, "text": text}


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


def _written(store: Store, session: str, row: OpRow) -> Row:
    """What a call wrote anew: mostly results, in full or folded."""
    object_id = None
    if row.subject is not None:
        member = store.head(member_id(session, row.subject))
        object_id = None if member is None else member.view(MemberDocument).object
    words = _FORMS.get(row.form, row.form)
    version = "" if row.version is None else f" v{row.version}"
    return {
        "message": row.message + 1,
        "place": f"#m{row.message + 1}",
        "form": row.form,
        "words": words + (f", {counted(len(row.folded), 'piece')} folded" if row.folded else ""),
        "handle": None if row.subject is None else f"@{row.subject}{version}",
        "object": object_id,
        "address": None if object_id is None else link("objects", object_id),
    }


def _parent_call(store: Store, session: str, call: int) -> int | None:
    head = store.head(call_id(session, call))
    record = None if head is None else CallRecord(head.fields)
    parent = store.head(record.parent) if record and record.parent else None
    if parent is None or parent.id != call_id(session, CallRecord(parent.fields).ordinal):
        return None
    return CallRecord(parent.fields).ordinal


def _plain(message: Any) -> str:
    return "\n".join(
        f"{b['kind']}: {b['text']}" if b["kind"] != "text" else b["text"] for b in _blocks(message)
    )
