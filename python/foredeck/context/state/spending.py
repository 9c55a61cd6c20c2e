"""What a session has cost so far, and what it would have with the host alone, over all branches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from foredeck.model.call_values import (
    CHARS_PER_TOKEN,
    UNSENT,
    Ack,
    CachePrediction,
    CalledModel,
    ModelSpending,
    PromptTokens,
)
from foredeck.model.calls import CallRecord
from foredeck.model.records import call_id

if TYPE_CHECKING:  # whoever asks for sums alone does without the records' branches
    from foredeck.context.state.call_log import CallLog


def spent_after(
    log: CallLog, session: str, model: CalledModel, cache: CachePrediction, acks: Iterable[Ack]
) -> list[ModelSpending]:
    """The sums of a session after one more call, which says what became of earlier ones.
    `session`: its id."""
    last = log.last
    # Each record has the sums up to its call: to know them, only the newest is read.
    before = () if last is None else last.spent
    # Records of earlier versions have no sums.
    rows = spent_by(log.records.values(), log.unsent) if before is None else list(before)
    for ack in acks:
        id = call_id(session, ack.call)
        record = log.record(id) if ack.outcome in UNSENT and id not in log.unsent else None
        if record is not None:
            rows = _with(rows, _negative(spent_at(record)))
    return _with(rows, _spent(model, cache, None))


def spent_at(record: CallRecord, parent: CallRecord | None = None) -> ModelSpending:
    """What one call has cost. `parent`: what it continues, for a record without the host's side."""
    return _spent(record.model, record.cache, _by_ledger(record, parent))


def spent_by(records: Iterable[CallRecord], unsent: Iterable[str]) -> list[ModelSpending]:
    """The sums of these calls, those left out that never went out."""
    rows: list[ModelSpending] = []
    known: dict[str, CallRecord] = {}
    left_out = set(unsent)
    for record in records:
        known[record.id] = record
        if record.id not in left_out:
            rows = _with(rows, spent_at(record, known.get(record.parent or "")))
    return rows


def _spent(model: CalledModel, cache: CachePrediction, plain: float | None) -> ModelSpending:
    # A call that went out without us counts on neither side.
    if cache.rule is None:
        return ModelSpending(model.name, model.input_price, 0, 0.0, 0.0)
    sent = PromptTokens(cache.read or 0, cache.written or 0, cache.fresh or 0).cost(model)
    if cache.plain is not None:
        plain = cache.plain.cost(model)
    return ModelSpending(model.name, model.input_price, 1, sent if plain is None else plain, sent)


def _by_ledger(record: CallRecord, parent: CallRecord | None) -> float:
    """The host's side of a call as its branch's ledger has it."""
    before = 0.0 if parent is None else parent.cost.plain
    return (
        max(0.0, record.cost.plain - before)
        * CHARS_PER_TOKEN
        / (record.stats.rate or CHARS_PER_TOKEN)
    )


def _with(rows: Sequence[ModelSpending], more: ModelSpending) -> list[ModelSpending]:
    if not more.calls:
        return list(rows)
    sums: Mapping[tuple[str, float], ModelSpending] = {(row.model, row.price): row for row in rows}
    key = more.model, more.price
    row = sums.get(key, ModelSpending(*key, 0, 0.0, 0.0))
    plain, ours = round(row.plain + more.plain, 1), round(row.ours + more.ours, 1)
    return list({**sums, key: ModelSpending(*key, row.calls + more.calls, plain, ours)}.values())


def _negative(spent: ModelSpending) -> ModelSpending:
    return spent._replace(calls=-spent.calls, plain=-spent.plain, ours=-spent.ours)
