"""A session as a tree: prompts, answers, tool calls, with the messages' times."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from foredeck.accounting import cache
from foredeck.accounting.figure import COUNTS
from foredeck.context.messages.shape import UNSENT_STOPS, Message
from foredeck.lookup.objects import version_text
from foredeck.model.identity import decode_text
from foredeck.model.messages import load_message, marked, unpack
from foredeck.model.records import TurnDocument
from foredeck.store.protocol import Head
from foredeck.store.store import Store
from foredeck.timeline.differences import hunks_of
from foredeck_agents.histories.tools import in_pis_tools
from foredeck_inspector.book import Book, BookedAnswer, BookedTool

PER_PAGE = 100
"""Answers on a page."""
_PATCH = "*** Begin Patch"
_OF_ANSWER = (
    *("session", "turn", "asked", "model", "usage", "call"),
    *("begun_ms", "spoken_ms", "ended_ms", "model_ms", "tools_ms", "took_ms"),
)
_TEXTS = ("command", "output", "summary")
"""Texts of messages without content."""
_OF_TOOL = ("object", "shown", "failed", "begun_ms", "ended_ms", "took_ms")


def turns_of(store: Store, book: Book, asked: Mapping[str, str]) -> dict[str, Any]:
    answers, opened = book.answers, _number(asked.get("message", ""))
    wanted = (
        (opened or 0) + len(book.inherited.turns) if opened else _number(asked.get("first", ""))
    )
    at = max(0, min(wanted or 1, len(answers)) - 1)
    first = at // PER_PAGE * PER_PAGE
    shown = answers[first : first + PER_PAGE]
    steps = _Steps(store, book.session, shown).all()
    return {
        "steps_total": len(answers),
        "first_step": first + 1,
        "last_step": first + len(shown),
        "steps_per_page": PER_PAGE,
        "inherited": {
            "count": len(book.inherited.turns),
            "gone": book.inherited.gone,
            "forgotten": book.inherited.forgotten,
        },
        "opened": opened,
        "words": [word for word in asked.get("words", "").split() if len(word) > 1][:20],
        "turns": [_turn(list(of)) for _, of in groupby(steps, key=_turn_of)],
    }


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


def _turn_of(step: Mapping[str, Any]) -> tuple[str, int]:
    return step["session"], step["turn"]


def _turn(steps: list[dict[str, Any]]) -> dict[str, Any]:
    begun = [step["begun_ms"] for step in steps if step["begun_ms"]]
    ended = [step["ended_ms"] or step["begun_ms"] for step in steps if step["begun_ms"]]
    first, last = min(begun, default=None), max(ended, default=None)
    span = last - first if first and last and last > first else 0
    for step in steps:
        step["spans"] = list(_spans(step, first, span)) if first and span else []
    usages = [step["usage"] for step in steps]
    money = sum(usage["money"] or 0 for usage in usages)
    return {
        "turn": steps[0]["turn"],
        "asked": steps[0]["asked"],
        "time_ms": first,
        "duration_ms": span or None,
        "tools": sum(len(step["tools"]) for step in steps),
        "failed": sum(tool["failed"] for step in steps for tool in step["tools"]),
        "usage": {
            **{name: sum(usage[name] for usage in usages) for name in COUNTS.values()},
            "money": money or None,
        },
        "steps": steps,
    }


def _spans(step: Mapping[str, Any], first: int, span: int) -> Iterator[dict[str, Any]]:
    """When model and tools were at work, in hundredths of the turn."""
    begun, spoken, ended = step["begun_ms"], step["spoken_ms"], step["ended_ms"]
    if begun is None:
        return
    if spoken is not None:
        yield _span("model", begun, spoken, first, span)
    elif ended is not None:
        yield _span("either", begun, ended, first, span)
        return
    for tool in step["tools"]:
        if tool["took_ms"] is not None:
            yield _span("tool", tool["begun_ms"], tool["ended_ms"], first, span, tool["tool"])


def _span(
    kind: str, begun: int, ended: int, first: int, span: int, name: str = ""
) -> dict[str, Any]:
    x, width = 100 * (begun - first) / span, 100 * (ended - begun) / span
    took = ended - begun
    return {
        "kind": kind, "name": name, "x": round(x, 2), "width": round(width, 2), "took_ms": took
    }  # fmt: skip


@dataclass(slots=True)
class _Steps:
    store: Store
    session: str
    answers: Sequence[BookedAnswer]
    _blobs: dict[str, bytes] = field(default_factory=dict)

    def all(self) -> Iterator[dict[str, Any]]:
        # All texts of the page in a few questions to the store: one by one they would take long.
        heads = self.store.heads(answer.id for answer in self.answers)
        self._fetch(address for head in heads.values() for address in _addresses(head))
        ids = [id for head in heads.values() for id in head.view(TurnDocument).toolcall_ids]
        calls = self.store.heads(ids)
        self._fetch(str(head.fields.get("text_hash")) for head in calls.values())
        self._fetch(
            digest
            for head in calls.values()
            for digest in marked([head.fields.get("args"), head.fields.get("details")])
        )
        for answer in self.answers:
            if (head := heads.get(answer.id)) is not None:
                yield self._step(head, answer, calls)

    def _fetch(self, digests: Iterable[str]) -> None:
        self._blobs |= self.store.blobs(digest for digest in digests if digest not in self._blobs)

    def _blob(self, digest: str) -> bytes:
        return self._blobs.get(digest) or self.store.blob(digest)

    def _step(self, head: Head, booked: BookedAnswer, calls: Mapping[str, Head]) -> dict[str, Any]:
        messages = [load_message(address, self._blob) for address in _addresses(head)]
        user = messages[0] if head.fields.get("user") else None
        answer = messages[-1] if booked.is_answer else None
        others = messages[bool(user) : len(messages) - bool(answer)]
        return {
            "message": booked.number,
            **{name: getattr(booked, name) for name in _OF_ANSWER},
            "user": None if user is None else _said(user),
            "others": [{"role": str(each.get("role")), "blocks": _said(each)} for each in others],
            "stop": _stop(answer),
            "blocks": [] if answer is None else _said(answer),
            "tools": [
                self._tool(tool, calls.get(tool.object), answer, position)
                for position, tool in enumerate(booked.tools)
            ],
        }

    def _tool(
        self, tool: BookedTool, call: Head | None, answer: Message | None, position: int
    ) -> dict[str, Any]:
        name = tool.name
        if call is None:
            asked = [b for b in cache.blocks_of(answer or {}) if b.get("type") == "toolCall"]
            block = asked[position] if position < len(asked) else {}
            given, details, result = block.get("arguments"), None, None
            name = str(block.get("name") or name)
        else:
            given = unpack(call.fields.get("args") or {}, self._blob)
            details = unpack(call.fields.get("details"), self._blob)
            result = self._text(call)
        return {
            "tool": name,
            **{name: getattr(tool, name) for name in _OF_TOOL},
            **_body(name, given if isinstance(given, dict) else {}, details),
            "result": result,
            "images": 0 if call is None else len(call.fields.get("images") or ()),
        }

    def _text(self, call: Head) -> str:
        digest = call.fields.get("text_hash")
        if digest in self._blobs:
            return decode_text(self._blobs[str(digest)])
        return version_text(self.store, call)[0] or ""


def _addresses(head: Head) -> list[str]:
    fields = head.fields
    return list(filter(None, (fields.get("user"), *fields["others"], fields.get("assistant"))))


def _stop(answer: Message | None) -> str:
    stop = str((answer or {}).get("stopReason") or "")
    return stop if stop in UNSENT_STOPS else ""


def blocks_of(message: Message) -> Iterator[dict[str, str]]:
    """All that a message holds, each with what it is."""
    content = message.get("content")
    if isinstance(content, list):
        yield from map(_block, content)
        return
    for name, text in (("text", content), *((name, message.get(name)) for name in _TEXTS)):
        if isinstance(text, str):
            yield {"kind": name, "text": text}


def _block(block: Any) -> dict[str, str]:
    if not isinstance(block, dict):
        return {"kind": "text", "text": str(block)}
    kind, text = str(block.get("type")), ""
    match kind:
        case "text":
            text = str(block.get("text") or "")
        case "thinking":
            kind += " (sealed)" if block.get("thinkingSignature") else ""
            text = str(block.get("thinking") or "")
        case "toolCall":
            kind, text = f"calls {block.get('name')}", _json(block.get("arguments"))
        case "image":
            text = f"({block.get('mimeType') or 'image'})"
        case _:
            text = _json(block)
    return {"kind": kind, "text": text}


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _said(message: Message) -> list[dict[str, str]]:
    """What was said in a message, without the calls of tools."""
    return [
        block
        for block in blocks_of(message)
        if block["text"] and block["kind"].startswith(("text", "thinking", "image", *_TEXTS))
    ]


def _body(tool: str, arguments: dict[str, Any], details: Any) -> dict[str, Any]:
    """A call's input: a difference for edits, else code."""
    # Other agents have tools of the same kinds under other names.
    call = {"type": "toolCall", "name": tool, "arguments": arguments}
    asked = in_pis_tools({"role": "assistant", "content": [call]})["content"][0]
    name, given = asked["name"], asked["arguments"]
    lines = _difference(name, given, details)
    text, language = _code(name, given)
    return {"diff": lines, "code": "" if lines else text, "language": language}


def _difference(name: str, given: Mapping[str, Any], details: Any) -> list[str]:
    # What the tool itself has reported says more than its arguments: where the lines are.
    made = details.get("diff") if isinstance(details, dict) else None
    if isinstance(made, str) and made:
        return made.split("\n")
    patch = next((v for v in given.values() if isinstance(v, str) and v.startswith(_PATCH)), None)
    if patch is not None:
        return patch.split("\n")
    edits = given.get("edits") if isinstance(given.get("edits"), list) else [given]
    if name != "edit":
        return []
    pairs = ((e.get("oldText"), e.get("newText")) for e in edits or () if isinstance(e, dict))
    return [
        line
        for old, new in pairs
        if isinstance(old, str) and isinstance(new, str)
        for line in hunks_of(old, new)
    ]


def _code(name: str, given: Mapping[str, Any]) -> tuple[str, str]:
    if name == "bash" and isinstance(given.get("command"), str):
        return str(given["command"]), "bash"
    if name == "write" and isinstance(given.get("content"), str):
        return str(given["content"]), str(given.get("path") or "")
    if not given or (name == "read" and set(given) == {"path"}):
        return "", ""
    return _json(given), "json"
