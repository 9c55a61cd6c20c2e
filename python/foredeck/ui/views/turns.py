"""What was said and done in a session: prompts, the answers to each, and their tool calls.

The same for sessions that foredeck saw and those that were read from a history. Times are those of
the messages, not of when they were stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foredeck.accounting import shapes
from foredeck.context.intake.toolcalls import TOOL_ORIGIN
from foredeck.context.messages.shape import UNSENT_STOPS, Message, time_of
from foredeck.context.state.stored_chat import inherited_turns, turns_of_session
from foredeck.histories.recordings import NO_MODEL
from foredeck.histories.tools import in_pis_tools
from foredeck.lookup.versions import version_text
from foredeck.model.canonical import decode_text
from foredeck.model.messages import load_message, marked, unpack
from foredeck.model.records import TurnDocument
from foredeck.sources.snapshots import AT_MS, version_ms
from foredeck.store.protocol import Head, Store
from foredeck.timeline.blame import ModelCalls
from foredeck.timeline.differences import hunks_of

PER_PAGE = 100
"""Answers on a page."""
CUT = 4_000
"""Characters of a tool's result, or of its arguments, that the page shows."""
_PATCH = "*** Begin Patch"
_COUNTS = {"input": "input", "cacheRead": "read", "cacheWrite": "written", "output": "output"}


@dataclass(frozen=True, slots=True)
class TurnsListing:
    """What of a session's turns is asked for: from an answer on, or the page that has one."""

    first: int | None = None
    message: int | None = None
    words: str = ""
    """What was searched for: marked in the texts."""


def turns_of(store: Store, session: str, asked: TurnsListing) -> dict[str, Any]:
    """What a page says of a session's turns; `totals` are of all of them."""
    inherited = inherited_turns(store, session)
    heads = [*inherited.turns, *turns_of_session(store, session)]
    at = _position(heads, len(inherited.turns), asked)
    first = at // PER_PAGE * PER_PAGE
    shown = heads[first : first + PER_PAGE]
    return {
        "steps_total": len(heads),
        "first_step": first + 1,
        "last_step": first + len(shown),
        "steps_per_page": PER_PAGE,
        "inherited": {
            "count": len(inherited.turns),
            "gone": inherited.gone,
            "forgotten": inherited.forgotten,
        },
        "totals": _totals(heads),
        "opened": asked.message,
        "words": [word for word in asked.words.split() if len(word) > 1][:20],
        "turns": list(_grouped(_Steps(store, session, shown).all())),
    }


def _position(heads: Sequence[Head], inherited: int, asked: TurnsListing) -> int:
    wanted = (asked.message or 0) + inherited if asked.message else asked.first or 1
    return max(0, min(wanted, len(heads)) - 1)


def _totals(heads: Sequence[Head]) -> dict[str, Any]:
    """Of all turns, from their documents alone."""
    total: dict[str, Any] = dict.fromkeys(_COUNTS.values(), 0)
    money, tools = 0.0, 0
    times: list[int] = []
    models: dict[str, None] = {}
    for head in heads:
        meta = head.fields.get("assistant_meta") or {}
        usage = used(meta)
        for name in _COUNTS.values():
            total[name] += usage[name]
        money += usage["money"] or 0
        tools += len(head.fields.get("toolcall_ids") or ())
        times += [meta["timestamp"]] if meta.get("timestamp") else []
        models |= {meta["model"]: None} if meta.get("model") not in (None, NO_MODEL) else {}
    span = (min(times), max(times)) if times else (None, None)
    return {
        **total,
        "money": money or None,
        "tools": tools,
        "answers": sum(1 for head in heads if head.fields.get("assistant")),
        "first_ms": span[0],
        "last_ms": span[1],
        "models": list(models),
    }


def used(meta: Mapping[str, Any]) -> dict[str, Any]:
    """What the provider counted for an answer, in tokens, and what Pi says that it cost."""
    usage = meta.get("usage") or {}
    cost = usage.get("cost")
    money = cost.get("total") if isinstance(cost, dict) else None
    counts = {ours: usage.get(theirs) for theirs, ours in _COUNTS.items()}
    return {
        **{name: count if isinstance(count, int) else 0 for name, count in counts.items()},
        "money": money if isinstance(money, int | float) and money > 0 else None,
    }


def _grouped(steps: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Answers by the prompt of the user that they belong to, with what they took together."""
    turn: list[dict[str, Any]] = []
    for step in steps:
        if turn and step["turn"] != turn[0]["turn"]:
            yield _turn(turn)
            turn = []
        turn.append(step)
    if turn:
        yield _turn(turn)


def _turn(steps: list[dict[str, Any]]) -> dict[str, Any]:
    first, last = steps[0]["start_ms"], max(step["end_ms"] or 0 for step in steps)
    span = (last - first) if first and last > first else 0
    for step in steps:
        step["bar"] = _bar(step, first, span)
    usages = [step["usage"] for step in steps]
    money = sum(usage["money"] or 0 for usage in usages)
    return {
        "turn": steps[0]["turn"],
        "asked": steps[0]["asked"],
        "begins": steps[0]["user"] is not None,
        "time_ms": first,
        "duration_ms": span or None,
        "tools": sum(len(step["tools"]) for step in steps),
        "failed": sum(tool["failed"] for step in steps for tool in step["tools"]),
        "usage": {
            **{name: sum(usage[name] for usage in usages) for name in _COUNTS.values()},
            "money": money or None,
        },
        "steps": steps,
    }


def _bar(step: Mapping[str, Any], first: int, span: int) -> dict[str, float] | None:
    """When a step began within its turn, in hundredths of the turn."""
    if not span or not step["start_ms"] or not step["end_ms"]:
        return None
    start = 100 * (step["start_ms"] - first) / span
    return {"x": round(start, 2), "width": round(100 * (step["duration_ms"] or 0) / span, 2)}


@dataclass(slots=True)
class _Steps:
    """The answers of one page, each with what was said before it and the tools that it called."""

    store: Store
    session: str
    heads: Sequence[Head]
    _blobs: dict[str, bytes] = field(default_factory=dict)

    def all(self) -> Iterator[dict[str, Any]]:
        """In order."""
        # All texts of the page in a few questions to the store: one by one they would take long.
        self._fetch(address for head in self.heads for address in _addresses(head))
        found = [self._messages(head) for head in self.heads]
        ids = [id for head in self.heads for id in head.view(TurnDocument).toolcall_ids]
        calls = self.store.heads(ids)
        self._fetch(str(head.fields.get("text_hash")) for head in calls.values())
        self._fetch(
            digest
            for head in calls.values()
            for digest in marked([head.fields.get("args"), head.fields.get("details")])
        )
        asking = ModelCalls(self.store, self.session)
        begun = [next(filter(None, map(time_of, messages)), None) for messages in found[1:]]
        end: int | None = None
        for head, messages, limit in zip(self.heads, found, [*begun, None], strict=True):
            step = self._step(head, messages, calls, asking, (end, limit))
            end = step["end_ms"] or end
            yield step

    def _fetch(self, digests: Iterator[str]) -> None:
        self._blobs |= self.store.blobs(digest for digest in digests if digest not in self._blobs)

    def _blob(self, digest: str) -> bytes:
        return self._blobs.get(digest) or self.store.blob(digest)

    def _messages(self, head: Head) -> list[Message]:
        return [load_message(address, self._blob) for address in _addresses(head)]

    def _step(
        self,
        head: Head,
        messages: Sequence[Message],
        calls: Mapping[str, Head],
        asking: ModelCalls,
        between: tuple[int | None, int | None],
    ) -> dict[str, Any]:
        fields, meta = head.fields, head.fields.get("assistant_meta") or {}
        user = messages[0] if fields.get("user") else None
        answer = messages[-1] if fields.get("assistant") else None
        others = messages[bool(user) : len(messages) - bool(answer)]
        said = time_of(user or {}) or None
        answered = time_of(answer or {}) or meta.get("timestamp")
        before, after = between
        start = said or before or answered
        tools = list(self._tools(head, answer, calls, (answered, after)))
        ends = [t for t in (said, answered, *(tool["time_ms"] for tool in tools)) if t]
        end = max(ends, default=None)
        behind = next((call for id in fields["toolcall_ids"] if (call := calls.get(id))), None)
        record = None if behind is None else asking.behind(behind)
        ended = str(fields.get("answers") or "").rpartition(":")[2]
        return {
            "message": int(head.id.rpartition(":")[2]),
            "session": str(fields["session"]),
            "turn": fields["user_turn"],
            "asked": None if user is None else _first_line(user),
            "user": None if user is None else list(blocks_of(user)),
            "others": [
                {"role": str(each.get("role")), "blocks": list(blocks_of(each))} for each in others
            ],
            "start_ms": start,
            "time_ms": answered,
            "end_ms": end,
            "duration_ms": end - start if end and start and end >= start else None,
            "model": str(meta.get("model") or ""),
            "stop": _stop(answer),
            "blocks": [] if answer is None else list(blocks_of(answer)),
            "tools": tools,
            "usage": used(meta),
            "call": int(ended) if ended.isdecimal() else None if record is None else record.ordinal,
        }

    def _tools(
        self,
        head: Head,
        answer: Message | None,
        calls: Mapping[str, Head],
        between: tuple[int | None, int | None],
    ) -> Iterator[dict[str, Any]]:
        begun, limit = between
        for position, id in enumerate(head.view(TurnDocument).toolcall_ids):
            call = calls.get(id)
            shown = self._without_result(answer, position, id) if call is None else self._tool(call)
            ended = shown["time_ms"]
            if ended and limit and ended > limit:
                # It was stored later than it was written, as by a replay.
                ended = shown["time_ms"] = None
            took = ended - begun if ended and begun and ended >= begun else None
            begun = ended or begun
            yield {"object": id, **shown, "duration_ms": took}

    def _tool(self, call: Head) -> dict[str, Any]:
        fields = call.fields
        arguments = unpack(fields.get("args") or {}, self._blob)
        details = unpack(fields.get("details"), self._blob)
        return {
            "tool": str(fields.get("tool") or "tool"),
            "shown": str(fields.get("args_display") or ""),
            "failed": fields.get("status") == "fail",
            "time_ms": recorded_ms(call),
            **_body(str(fields.get("tool")), arguments, details),
            "result": self._text(call),
            "images": len(fields.get("images") or ()),
        }

    def _text(self, call: Head) -> str:
        digest = call.fields.get("text_hash")
        if digest in self._blobs:
            return decode_text(self._blobs[str(digest)])
        return version_text(self.store, call)[0] or ""

    def _without_result(self, answer: Message | None, position: int, id: str) -> dict[str, Any]:
        asked = [b for b in shapes.blocks_of(answer or {}) if b.get("type") == "toolCall"]
        block = asked[position] if position < len(asked) else {}
        arguments = block.get("arguments")
        return {
            "tool": str(block.get("name") or id),
            "shown": "",
            "failed": False,
            "time_ms": None,
            **_body(str(block.get("name")), arguments if isinstance(arguments, dict) else {}, None),
            "result": None,
            "images": 0,
        }


def recorded_ms(call: Head) -> int | None:
    """When a tool's result was written; None where only the time of its reading in is known."""
    provenance = call.fields.get("provenance") or {}
    return (
        version_ms(call) if AT_MS in provenance or provenance.get("origin") == TOOL_ORIGIN else None
    )


def _addresses(head: Head) -> list[str]:
    fields = head.fields
    return list(filter(None, (fields.get("user"), *fields["others"], fields.get("assistant"))))


def _stop(answer: Message | None) -> str:
    stop = str((answer or {}).get("stopReason") or "")
    return stop if stop in UNSENT_STOPS else ""


def _first_line(message: Message) -> str:
    texts = (block["text"] for block in blocks_of(message) if block["kind"] == "text")
    return " ".join(" ".join(texts).split())[:200]


def blocks_of(message: Message) -> Iterator[dict[str, str]]:
    """What a message says, block by block; its tool calls are listed apart."""
    content = message.get("content")
    if not isinstance(content, list):
        texts = [content, *(message.get(name) for name in ("command", "output", "summary"))]
        yield from ({"kind": "text", "text": text} for text in texts if isinstance(text, str))
        return
    for block in content:
        kind = block.get("type") if isinstance(block, dict) else "text"
        if kind == "text":
            yield {"kind": "text", "text": str(block.get("text") or "")}
        elif kind == "thinking" and block.get("thinking"):
            yield {"kind": "thinking", "text": str(block["thinking"])}
        elif kind == "image":
            yield {"kind": "image", "text": str(block.get("mimeType") or "image")}


def _body(tool: str, arguments: dict[str, Any], details: Any) -> dict[str, Any]:
    """What a call was given: a difference where it edits, else code of some language."""
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
    return json.dumps(given, indent=2, ensure_ascii=False), "json"
