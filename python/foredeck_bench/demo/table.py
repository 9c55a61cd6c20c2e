"""What the demo prints: each call's prompt beside plain Pi's."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foredeck.config import Config
from foredeck.model.call_values import SHORT_REASONS
from foredeck.model.calls import CallRecord, in_order
from foredeck.store.place import open_store

_DOES_WIDTH, WIDTH = 21, 80
_LEAST_TOKENS = 30

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallRow:
    """One recorded call; `folded` counts messages that are only a reference now."""

    call: int
    plain_tokens: int
    sent_tokens: int
    folded: int
    why: str


def newest_session(config: Config) -> tuple[str, Path | None] | None:
    """Id and host file of the newest session."""
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
        return list(rows_of(in_order(head.fields for head in heads)))


def rows_of(records: Iterable[CallRecord]) -> Iterator[CallRow]:
    before: CallRecord | None = None
    rows_listed: set[int] = set()
    for record in records:
        yield CallRow(
            record.ordinal,
            sum(record.cache.baseline or ()),
            _sent(record),
            record.stats.folded,
            _why(record, before, rows_listed),
        )
        before = record
        rows_listed.update(record.sets.active.added)


def _sent(record: CallRecord) -> int:
    cache = record.cache
    return (cache.read or 0) + (cache.written or 0) + (cache.fresh or 0)


def _why(record: CallRecord, before: CallRecord | None, shown: set[int]) -> str:
    decision = record.decision
    if decision.is_host:
        return f"sent as Pi has it ({decision.reason})"
    notes = []
    if decision.is_rebase:
        more = record.stats.folded - (before.stats.folded if before else 0)
        reason = SHORT_REASONS.get(str(decision.reason), str(decision.reason))
        notes.append(f"{more} folded: {reason}" if more > 0 else f"shorter: {reason}")
    elif before:
        plain = sum(record.cache.baseline or ()) - sum(before.cache.baseline or ())
        spared = plain - (_sent(record) - _sent(before))
        if spared >= _LEAST_TOKENS:
            notes.append(f"{spared:,} not sent twice")
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


def _handles(ordinals: Iterable[int]) -> str:
    return " ".join(f"@{ordinal}" for ordinal in ordinals)


def answers_in(session_file: Path) -> list[str]:
    """What the model did with each call of a session, in a few words."""
    lines = session_file.read_text(encoding="utf-8").split("\n")
    entries = (json.loads(line) for line in lines if line)
    messages = (entry.get("message") or {} for entry in entries if entry.get("type") == "message")
    return [_answer(message) for message in messages if message.get("role") == "assistant"]


def _answer(message: Json) -> str:
    calls = [block for block in message.get("content") or () if block.get("type") == "toolCall"]
    if not calls:
        return "answers" if message.get("stopReason") == "stop" else str(message.get("stopReason"))
    return ", ".join(_call_words(call) for call in calls)


def _call_words(call: Json) -> str:
    arguments = call.get("arguments") or {}
    subject = next((str(value) for value in arguments.values() if isinstance(value, str)), "")
    return f"{call.get('name')} {subject}".strip()


def render(rows: list[CallRow], answers: list[str]) -> str:
    head = f"{'call':>4}  {'plain Pi':>8}  {'foredeck':>8}  {'folded':>6}  "
    lines = [f"{head}{'the model then':<{_DOES_WIDTH}}  what changed"]
    for row in rows:
        answer = answers[row.call - 1] if row.call <= len(answers) else ""
        remarks = (
            f"{row.call:>4}  {row.plain_tokens:>8,}  {row.sent_tokens:>8,}  {row.folded:>6}  "
            f"{_shorten(answer, _DOES_WIDTH):<{_DOES_WIDTH}}  "
        )
        lines.append(f"{remarks}{_shorten(row.why, WIDTH - len(remarks))}".rstrip())
    return "\n".join(lines)


def _shorten(text: str, width: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"
