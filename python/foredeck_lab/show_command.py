"""`foredeck show` and `trace`: what the model saw at a call, and at which calls it saw a text."""

from __future__ import annotations

import json
import re
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from foredeck.accounting.trace import trace
from foredeck.accounting.trace_spans import Trace, rows_of
from foredeck.cli.arguments import EXAMPLES, parse_moment, resolve_config
from foredeck.cli.output import Progress, answer, coloured, filled, fitted_table, table
from foredeck.cli.session_sets import sets_at_call
from foredeck.context.messages.shape import UNSENT_STOPS
from foredeck.errors import CommandRefused, NotFound
from foredeck.lookup.objects import tracking
from foredeck.lookup.prompts import Prompt, prompt_at
from foredeck.lookup.sessions import Branches, branches_of, checked_call
from foredeck.model.calls import CallRecord
from foredeck.model.figures import counted, model_name, short_bytes, short_count, when
from foredeck.model.records import call_id
from foredeck.store.store import Store
from foredeck.timeline.branches import records_of
from foredeck_lab.prompts import named_session, with_prompts


def run(args: Namespace) -> int:
    """`foredeck show`."""
    with named_session(args) as named, with_prompts(named, args) as store:
        session = named.session
        branches = branches_of(store, session)
        calls = len(branches.times)
        if args.at is None:
            call = checked_call(store, session, args.call)
        else:
            call = call_at(store, session, args.at)
        if args.branches:
            return _branches(args, branches)
        if args.sets:
            now = tracking(resolve_config(args).config, store)
            found = sets_at_call(store, session, call, now)
            return answer(args, found.to_json(), found.to_text().removesuffix("\n"))
        prompt = prompt_at(store, session, call)
        if named.recording is not None:
            # No recording has them: what the replay was given stands in for their length alone.
            prompt = replace(prompt, system=[], tools=[])
    branch = branches.of_call(call)
    shown = ("call", "system", "tools", "messages")
    of = f", branch {branch.number}" if len(branches.all) > 1 else ""
    return answer(
        args,
        {name: getattr(prompt, name) for name in shown},
        _lines(f"call {call} of {calls}{of}", session, prompt),
    )


def _branches(args: Namespace, branches: Branches) -> int:
    described = [
        {**asdict(branch), "current": branch is branches.current} for branch in branches.all
    ]
    rows = [
        (
            str(branch.number),
            _ranges(branch.calls),
            "the beginning" if branch.left_at is None else f"call {branch.left_at}",
            "now" if branch is branches.current else "",
            branch.asked,
        )
        for branch in branches.all
    ]
    text = fitted_table([("branch", "calls", "from", "", "asked"), *rows])
    return answer(args, {"branches": described}, text)


def _ranges(calls: list[int]) -> str:
    """Numbers in short: `1-4, 7`."""
    ranges: list[list[int]] = []
    for call in calls:
        if ranges and call == ranges[-1][1] + 1:
            ranges[-1][1] = call
        else:
            ranges.append([call, call])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)


def _lines(place: str, session: str, prompt: Prompt) -> Iterator[str]:
    yield coloured(_title(place, session, prompt), "bold")
    for message in prompt.system:
        yield from _section("system", _content(message.get("content")))
    for tool in prompt.tools:
        text = [str(tool.get("description") or ""), _json(tool.get("parameters"))]
        yield from _section(f"tool {tool.get('name')}", text)
    for number, message in enumerate(prompt.messages):
        yield from _section(_heading(number, message, prompt), _message(message))
    yield ""
    yield coloured(_summary(prompt), "dim")


def _title(place: str, session: str, prompt: Prompt) -> str:
    record = prompt.record
    title = f"session {session}, {place}, {when(record.time_ms)}, {model_name(record.model.name)}"
    return ", ".join(filter(None, (title, record.decision.short_words)))


def _summary(prompt: Prompt) -> str:
    stats = prompt.record.stats
    return (
        f"{counted(len(prompt.messages), 'message')}, {len(prompt.edited)} edited and "
        f"{prompt.numbers.count(None)} inserted by foredeck; {short_count(stats.chars_sent)} "
        f"characters sent, {short_count(stats.chars_host)} with plain Pi; "
        f"{counted(stats.objects, 'object')}, {stats.active} active, "
        f"{stats.pinned} pinned, {stats.folded} folded"
    )


def _section(heading: str, lines: Iterable[str]) -> list[str]:
    return ["", coloured(f"--- {heading}", "bold"), *lines]


def _heading(number: int, message: dict[str, Any], prompt: Prompt) -> str:
    words = [str(number + 1), str(message.get("role"))]
    if message.get("role") == "toolResult":
        words += [str(message.get("toolName")), str(message.get("toolCallId"))]
        words += ["failed"] if message.get("isError") else []
    notes = []
    if message.get("stopReason") in UNSENT_STOPS:
        notes.append(f"{message['stopReason']}: not sent")
    if message.get("excludeFromContext"):
        notes.append("not sent")
    if number in prompt.edited:
        notes.append("edited by foredeck")
    listed = prompt.numbers[number]
    if listed is None:
        notes.append("inserted by foredeck")
    elif listed != number + 1:
        notes.append(f"message {listed} of the chat")
    return " ".join(words) + (f" [{', '.join(notes)}]" if notes else "")


def _message(message: dict[str, Any]) -> Iterator[str]:
    if "content" in message:
        yield from _content(message["content"])
        return
    if "command" in message:
        yield f"$ {message['command']}"
    for name in ("output", "summary"):
        if message.get(name):
            yield str(message[name])


def _content(content: Any) -> list[str]:
    if not isinstance(content, list):
        return [str(content or "")]
    return [_block(block) for block in content]


def _block(block: Any) -> str:
    kind = block.get("type") if isinstance(block, dict) else None
    match kind:
        case "text":
            return str(block.get("text") or "")
        case "thinking":
            return f"[thinking] {block.get('thinking') or '(redacted)'}"
        case "toolCall":
            return f"[call {block.get('id')}] {block.get('name')} {_json(block.get('arguments'))}"
        case "image":
            size = len(str(block.get("data") or "")) * 3 // 4
            return f"[image {block.get('mimeType')}, {short_bytes(size)}]"
    return _json(block)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# From a time or a hash to a call


_HASH = re.compile(r"[0-9a-f]{8,64}")


def call_at(store: Store, session: str, text: str) -> int:
    """The last call by a time, or the first with a hash in its prompt. Raises `NotFound`."""
    records = records_of(store, session)
    if _HASH.fullmatch(text):
        return _with_hash(session, records, text)
    time_ms = parse_moment(text)
    if time_ms is None:
        raise CommandRefused(
            f"{text!r} is neither a time ({EXAMPLES}) nor the start of a hash (8 digits or more)."
        )
    by_then = [record for record in records if record.time_ms <= time_ms]
    if not by_then:
        raise NotFound(
            f"session {session} had made no call yet at {when(time_ms)}; it has {_span(records)}."
        )
    return by_then[-1].ordinal


def _with_hash(session: str, records: Sequence[CallRecord], text: str) -> int:
    for record in records:
        if any(hash.startswith(text) for hash in _hashes(record)):
            return record.ordinal
    raise NotFound(
        f"no call of session {session} had a text or message whose hash begins {text}: "
        f"`foredeck history OBJECT --json` shows those of an object. It has {_span(records)}."
    )


def _hashes(record: CallRecord) -> Iterator[str]:
    """Hashes of the messages and texts that came into the prompt with a call."""
    yield from record.addresses
    yield from (row.text_hash for row in record.ops if row.text_hash is not None)


def _span(records: Sequence[CallRecord]) -> str:
    first, last = (when(records[end].time_ms) for end in (0, -1))
    return f"{counted(len(records), 'call')}, from {first} to {last}"


# A text through the calls


def run_trace(args: Namespace) -> int:
    """`foredeck trace`."""
    if not args.text.strip():
        raise CommandRefused("there is nothing to look for: give a name, a path or any other text.")
    with named_session(args) as named, with_prompts(named, args) as store:
        found = _trace(store, named.session, args)
    rows = [tuple(cell.replace("\n", " ") for cell in row) for row in rows_of(found)]
    head = f"{found.text!r} in session {found.session}, {found.over}"
    lines = [filled(head), "", table([("calls", "state", "where"), *rows])]
    return answer(args, found.to_json(), lines)


def _trace(store: Store, session: str, args: Namespace) -> Trace:
    last = call_id(session, checked_call(store, session, args.call))
    with Progress("reading calls") as progress:
        return trace(store, session, args.text, last, progress.advance)
