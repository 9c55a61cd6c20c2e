"""The stored form of plans: what call records keep of operations and says.

Only this module reads and writes it. A record holds changes since its parent, so a plan is read by
replaying the chain of records.

| here | in a record |
|---|---|
| `Op` | a row of `ops`, with the same form |
| `omit` | its index in `omitted`; a row of the form `omitted` |
| `Say` | an entry of `says` |
| `Op.folded` | `folded` of the row |
| `Branch.candidates`, released | `foldable`, `released` |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foredeck.context.plan.ops import MessageSpan, Op, Say, Shown, as_host, omit
from foredeck.context.plan.plan import Plan
from foredeck.model.call_values import OpRow
from foredeck.model.calls import CallRecord
from foredeck.model.messages import MessageKey, pack, unpack


def pack_op(plan: Plan, index: int, blobs: dict[str, bytes]) -> OpRow:
    """The row of a message; long texts join `blobs`."""
    op = plan.ops[index]
    packed = None if op.blocks is None else pack(op.blocks, blobs)
    return OpRow(index, op.form, packed, op.subject, op.version, op.base, op.text_hash, op.folded)


def unpack_op(row: OpRow, blob: Callable[[str], bytes]) -> Op:
    """The inverse of `pack_op`."""
    subject, form = row.subject, row.form
    content = None if subject is None else Shown(subject, row.version, row.text_hash)
    if form == "omitted":
        return omit(content)
    if row.packed is not None:
        return Op(form, unpack(row.packed, blob), content, row.base, row.folded)
    return Op(form if form == "full" or form == "note" else "host", None, content, row.base)


def pack_says(says: Sequence[Say], blobs: dict[str, bytes]) -> list[Any]:
    """The stored form of says; long texts join `blobs`."""
    return [pack(_to_stored(say), blobs) for say in says]


def unpack_says(packed: Sequence[Any], blob: Callable[[str], bytes]) -> list[Say]:
    return [_from_stored(unpack(each, blob)) for each in packed]


def packed_span(packed: Mapping[str, Any]) -> MessageSpan | None:
    """The span that a stored say covers, without unpacking its text."""
    return MessageSpan(*packed["covers"]) if "covers" in packed else None


def _to_stored(say: Say) -> dict[str, Any]:
    stored: dict[str, Any] = {"purpose": say.purpose, "blocks": say.blocks}
    if say.covers is not None:
        stored["covers"] = [say.covers.first, say.covers.until]
    rest = {name: getattr(say, name) for name in _REST}
    return stored | {name: value for name, value in rest.items() if value}


def _from_stored(stored: Mapping[str, Any]) -> Say:
    rest = {name: stored[name] for name in _REST if name in stored}
    return Say(stored["purpose"], stored["blocks"], packed_span(stored), **rest)


_REST = ("object", "call_id", "tool", "head_tokens")


def _row_as_host(row: OpRow) -> OpRow:
    """The row of a message that went out `as_host`, without reading its blocks."""
    op = as_host(unpack_op(row._replace(packed=None), lambda _digest: b""))
    if op.form == "note":
        return row
    return OpRow(row.message, "host", None, op.subject, op.version, None, op.text_hash)


@dataclass(slots=True)
class StoredPlan:
    """What went out with a chain's newest call; replays twice as fast as `BranchState`."""

    keys: list[MessageKey] = field(default_factory=list)
    stored_rows: dict[int, Sequence[Any]] = field(default_factory=dict)
    """Parsed on demand, since most are replaced unread."""
    says: dict[int, list[Any]] = field(default_factory=dict)
    """Packed, by the index of the next host message."""
    omitted: set[int] = field(default_factory=set)
    """Host messages that are not sent."""
    _edited_until: int = field(default=0, compare=False)
    """No insert or omission lies at or after this."""
    _as_host: range = field(default=range(0), compare=False)
    """Messages in the host's form, so that reading a session without foredeck stays linear."""

    def apply(self, record: CallRecord) -> None:
        # In the order of the live call. The rows of the record come last: a call that went out
        # without us has taken in results of its own, and its rows say how those are shown.
        self.cut(record.shared)
        self.keys.extend(record.keys)
        if record.is_host:
            self._send_as_host(record.decision.edited or 0)
        self.stored_rows.update(record.stored_rows)
        if not record.is_host:
            self._leave_host(min(record.stored_rows, default=len(self.keys)))
        self._cut_edits(min(record.shared, record.changed_from))
        says, omitted = record.says, record.omitted
        self.says.update(says)
        self.omitted.update(omitted)
        last = max(max(says, default=-1), max(omitted, default=-1))
        self._edited_until = max(self._edited_until, last + 1)

    @property
    def rows(self) -> dict[int, OpRow]:
        """The newest row of each message."""
        return {index: OpRow.from_row(row) for index, row in sorted(self.stored_rows.items())}

    def outgoing(self, blob: Callable[[str], bytes]) -> Iterator[Say | Op]:
        """What went out, as by `Plan.outgoing`."""
        rows = self.rows
        for index in range(len(self.keys) + 1):
            yield from unpack_says(self.says.get(index, ()), blob)
            if index < len(self.keys):
                yield self.op(index, rows.get(index), blob)

    def op(self, index: int, row: OpRow | None, blob: Callable[[str], bytes]) -> Op:
        op = Op() if row is None else unpack_op(row, blob)
        if index in self.omitted:
            return omit(op.shown)
        return as_host(op) if op.form == "omitted" else op

    def cut(self, length: int) -> None:
        """Forgets the messages from `length` on."""
        if length >= len(self.keys):
            return
        del self.keys[length:]
        rows = self.stored_rows
        self.stored_rows = {index: row for index, row in rows.items() if index < length}
        self._leave_host(length)
        self._cut_edits(length)

    def _send_as_host(self, edited: int) -> None:
        """Messages from `edited` on."""
        rows, known = self.stored_rows, self._as_host
        for index in (*range(edited, known.start), *range(max(edited, known.stop), len(self.keys))):
            if (row := rows.get(index)) is not None:
                rows[index] = _row_as_host(OpRow.from_row(row)).to_row()
        first = known.start if edited <= known.stop else edited
        self._as_host = range(min(first, edited), len(self.keys))
        self._cut_edits(edited)

    def _leave_host(self, index: int) -> None:
        """From `index` on, messages may be in another form than the host's."""
        self._as_host = self._as_host[: max(0, index - self._as_host.start)]

    def _cut_edits(self, length: int) -> None:
        if self._edited_until > length:
            self.says = {index: ours for index, ours in self.says.items() if index < length}
            self.omitted = {index for index in self.omitted if index < length}
            self._edited_until = length
