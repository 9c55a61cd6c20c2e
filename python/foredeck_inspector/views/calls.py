"""One call: the prompt as the model saw it, what in it is new, and why."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from typing import Any

from foredeck.context.messages.shape import Message
from foredeck.context.state.gauge import weighed
from foredeck.context.tools.reasons import reason_words
from foredeck.lookup.prompts import Prompt
from foredeck.lookup.sessions import checked_call, count_calls
from foredeck.model.call_values import OpRow
from foredeck.model.calls import CallRecord
from foredeck.model.figures import counted, model_name
from foredeck.model.records import MemberDocument, call_id, member_id
from foredeck.store.store import Store
from foredeck.timeline.differences import hunks_of
from foredeck_inspector.book import BookedCall, folded_handles
from foredeck_inspector.pages import Asked, WebPage, link
from foredeck_inspector.tables import Column, Row, Table
from foredeck_inspector.views.sessions import found_session, title_of
from foredeck_inspector.views.turns import blocks_of

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


def call_page(asked: Asked) -> WebPage:
    """A call's prompt beside that of `base` (default: its parent). Raises `NotFound`."""
    store, work, call, base = asked.store, asked.work, asked.part("call"), asked.number("base")
    session, _ = found_session(store, asked.part("session"))
    for number in (call, base or call):
        checked_call(store, session, number)
    last = count_calls(store, session)
    before = base or _parent_call(store, session, call)
    wanted = [*([before] if before else []), call]
    job = work.prompts_at(session, wanted)
    if job.result is None:
        waits = {"job": job.to_json()}
        return WebPage("waiting.html", f"Call {call}", waits, "overview", renews=1)
    *old, prompt = job.result
    record = prompt.record
    messages = list(_compared(old[0] if old else None, prompt))
    rows = [_written(store, session, row) for row in record.ops if row.form not in _UNSEEN]
    states = [message["state"] for message in messages]
    size = sum(len(block["text"]) for message in messages for block in message["blocks"])
    shows_all = bool(asked.values.get("all"))
    is_short = shows_all or size <= MOST_CHARS
    for message in messages:
        if not is_short and message["state"] == "same":
            message["blocks"] = []
    book, _ = work.book(session)
    booked = book.calls[call - 1] if len(book.calls) >= call else None
    written = Table("written", "What was written for this call", _WRITTEN, rows, 40)
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
        "written": written.arranged(asked.values),
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
        "model": model_name(record.model.name),
        "layout": record.layout,
        "policy": record.policy,
        "decision": record.decision.to_record(),
        "weighed": weighed(record),
        "why": reason_words(record, verbose=True) if record.decision.is_rebase else "",
        "lost": record.lost.sum.text,
        "folded_now": folded_handles(record),
        "stats": stats._asdict(),
        "cache": record.cache.to_record(),
    }


def _answered(call: BookedCall | None) -> dict[str, Any]:
    names = ("tokens_sent", "tokens_plain", "cost", "cost_tokens", "model_ms", "tools_ms", "answer")
    data: dict[str, Any] = {**dict.fromkeys(names), "ran": []}
    if call is not None:
        data |= {"tokens_sent": call.sent, "tokens_plain": call.plain, "cost": call.cost}
        data["cost_tokens"] = round(call.cost_tokens) if call.cost is None else None
    if call is not None and (answer := call.answer) is not None:
        data |= {"model_ms": answer.model_ms, "tools_ms": answer.tools_ms}
        data |= {"answer": answer.number, "ran": [tool.name for tool in answer.tools]}
    return data


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
    return {
        **_without_place(prompt.messages[number], state),
        "number": number + 1,
        "whose": "foredeck" if prompt.numbers[number] is None else "host",
        "edited": number in prompt.edited,
    }


def _gone(message: Message) -> dict[str, Any]:
    lines = [f"-{line}" for line in _plain(message).split("\n")]
    return {**_without_place(message, "gone"), "blocks": [], "lines": lines}


def _without_place(message: Message, state: str) -> dict[str, Any]:
    blocks = list(blocks_of(message))
    return {
        "number": None,
        "state": state,
        "role": str(message.get("role")),
        "tool": message.get("toolName"),
        "failed": bool(message.get("isError")),
        "whose": "host",
        "edited": False,
        "summary": _summary(blocks),
        "blocks": blocks,
        "lines": None,
    }


def _summary(blocks: Sequence[Mapping[str, Any]]) -> str:
    words = [_labelled(block, " ")[: 2 * _SUMMARY_CHARS] for block in blocks]
    return " ".join(" · ".join(words).split())[:_SUMMARY_CHARS]


def _labelled(block: Mapping[str, str], gap: str) -> str:
    return block["text"] if block["kind"] == "text" else f"{block['kind']}{gap}{block['text']}"


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


def _plain(message: Message) -> str:
    return "\n".join(_labelled(block, ": ") for block in blocks_of(message))
