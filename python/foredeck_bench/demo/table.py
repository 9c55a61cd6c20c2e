"""The demo's table: per model call, what the model saw with foredeck and what plain Pi would send.

What foredeck did and why is read from the call records in its store, what the model saw from the
requests that reached it, plain Pi's side from the session file, in which Pi keeps every message
in full. Tokens are estimated alike: characters of text and arguments / 4.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foredeck.config import Config
from foredeck.model.call_values import CallStats
from foredeck.model.calls import CallRecord, in_order
from foredeck.model.own_tools import CONTEXT_TOOLS
from foredeck.store.opening import open_store
from foredeck_bench.scripted.cache import block_tokens, estimate_tokens

CHARS_PER_TOKEN = 4

_WHAT_WIDTH = 44
_REASONS = {
    "high-water": "the window fills up",
    "cold": "the cache was cold",
}

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallRow:
    """One model call as foredeck recorded it.

    `host_tokens` is the host's whole list, `sent_tokens` what went out; `active` and `pinned`
    count objects, `collapsed` outputs that are only a reference now. `why` says what changed.
    """

    call: int
    host_tokens: int
    sent_tokens: int
    active: int
    collapsed: int
    pinned: int
    why: str


@dataclass(frozen=True, slots=True)
class PlainCall:
    """One model call as plain Pi would have made it: its messages in tokens, and the answer."""

    tokens: int
    answer: str


# ---------------------------------------------------------------- foredeck's side


def newest_session(config: Config) -> tuple[str, Path | None] | None:
    """Id and host file of the newest session in a store; None where there is none."""
    with closing(open_store(config, lazy=True)) as store:
        heads = store.query("session")
    if not heads:
        return None
    fields = heads[-1].fields
    file = fields["host_file"]
    return fields["session_id"], Path(file) if file else None


def call_rows(config: Config, session: str) -> list[CallRow]:
    """All recorded calls of a session, in order."""
    with closing(open_store(config, lazy=True)) as store:
        heads = store.query("call", {"session": session})
        return list(_rows(in_order(head.fields for head in heads)))


def _rows(records: Iterable[CallRecord]) -> Iterator[CallRow]:
    before: CallStats | None = None
    shown: set[int] = set()
    for record in records:
        stats = record.stats
        yield CallRow(
            record.ordinal,
            _tokens(stats.chars_host),
            _tokens(stats.chars_sent),
            stats.active,
            stats.folded,
            stats.pinned,
            _why(record, before, shown),
        )
        before = stats
        shown.update(record.sets.active.added)


def _why(record: CallRecord, before: CallStats | None, shown: set[int]) -> str:
    decision, stats = record.decision, record.stats
    if decision.is_host:
        return f"sent as Pi has it ({decision.reason})"
    notes = []
    if decision.is_rebase:
        folded = stats.folded - (before.folded if before else 0)
        reason = str(decision.reason)
        notes.append(f"{folded} outputs folded: {_REASONS.get(reason, reason)}")
    elif before:
        host = stats.chars_host - before.chars_host
        spared = host - (stats.chars_sent - before.chars_sent)
        if _tokens(spared) >= 30:
            notes.append(f"{_tokens(spared):,} tokens not sent twice")
    notes += _set_changes(record, shown)
    return "; ".join(notes)


def _set_changes(record: CallRecord, shown: set[int]) -> list[str]:
    sets = record.sets
    pins = ((sets.pinned.added, "pinned"), (sets.pinned.removed, "unpinned"))
    notes = [f"{_handles(ordinals)} {word}" for ordinals, word in pins if ordinals]
    back = [ordinal for ordinal in sets.active.added if ordinal in shown]
    if back:
        notes.append(f"{_handles(back)} back in full")
    if not record.decision.is_rebase and sets.active.removed:
        notes.append(f"{_handles(sets.active.removed)} may be folded")
    return notes


def _tokens(chars: int) -> int:
    return -(-chars // CHARS_PER_TOKEN)


def _handles(ordinals: Iterable[int]) -> str:
    return " ".join(f"@{ordinal}" for ordinal in ordinals)


# ---------------------------------------------------------------- plain Pi's side


def plain_calls(session_file: Path, fixed: int) -> list[PlainCall]:
    """Each call of a session as plain Pi would have made it.

    `fixed` is what system prompt and tools take, in tokens. Calls of foredeck's own tools and
    their results are left out: plain Pi has none.
    """
    sum_so_far = fixed
    found = []
    lines = session_file.read_text(encoding="utf-8").split("\n")
    for entry in (json.loads(line) for line in lines if line):
        message = entry.get("message") or {}
        if entry.get("type") != "message" or message.get("role") == "system":
            continue
        if message.get("role") == "assistant":
            found.append(PlainCall(sum_so_far, _answer(message)))
        sum_so_far += _message_tokens(message)
    return found


def _message_tokens(message: Json) -> int:
    if message.get("role") == "toolResult" and message.get("toolName") in CONTEXT_TOOLS:
        return 0
    content = message.get("content")
    if isinstance(content, str):
        return estimate_tokens(content)
    return sum(_block_tokens(block) for block in content or ())


def _block_tokens(block: Json) -> int:
    if block.get("type") != "toolCall":
        return block_tokens(dict(block))
    if block.get("name") in CONTEXT_TOOLS:
        return 0
    return estimate_tokens(block["name"]) + estimate_tokens(block["arguments"])


def _answer(message: Json) -> str:
    """What the model did with a call, in a few words."""
    calls = [block for block in message.get("content") or () if block.get("type") == "toolCall"]
    if not calls:
        return "answers" if message.get("stopReason") == "stop" else str(message.get("stopReason"))
    return ", ".join(_call_words(call) for call in calls)


def _call_words(call: Json) -> str:
    arguments = call.get("arguments") or {}
    subject = next((str(value) for value in arguments.values() if isinstance(value, str)), "")
    return f"{call.get('name')} {subject}".strip()


# ---------------------------------------------------------------- the table


def render(rows: list[CallRow], seen: list[int], plain: list[PlainCall]) -> str:
    """The table as text.

    `seen` holds the tokens of each request and `plain` each call without foredeck; for calls
    that they do not know, the engine's own figures stand in.
    """
    lines = [
        f"{'call':>4}  {'plain Pi':>8}  {'foredeck':>8}  {'active':>6}  {'folded':>6}  "
        f"{'pinned':>6}  {'what the model then does':<{_WHAT_WIDTH}}  what changed, and why"
    ]
    for row in rows:
        known = plain[row.call - 1] if row.call <= len(plain) else None
        host = known.tokens if known else row.host_tokens
        sent = seen[row.call - 1] if row.call <= len(seen) else row.sent_tokens
        answer = _shorten(known.answer if known else "", _WHAT_WIDTH)
        lines.append(
            f"{row.call:>4}  {host:>8,}  {sent:>8,}  {row.active:>6}  "
            f"{row.collapsed:>6}  {row.pinned:>6}  {answer:<{_WHAT_WIDTH}}  {row.why}".rstrip()
        )
    return "\n".join(lines)


def _shorten(text: str, width: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"
