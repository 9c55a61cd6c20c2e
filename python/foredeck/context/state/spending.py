"""What a session has cost so far, and what it would have with the host alone, over all branches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from foredeck.model.call_values import (
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
    rows = [] if last is None else list(last.spent)
    for ack in acks:
        id = call_id(session, ack.call)
        record = log.record(id) if ack.outcome in UNSENT and id not in log.unsent else None
        if record is not None:
            rows = _with(rows, _negative(spent_at(record)))
    if (reported := cache.reported) is not None and reported.model is not None:
        # The answer has told which model it was.
        record = log.record(call_id(session, reported.call))
        if record is not None:
            rows = _with(rows, _negative(spent_at(record)))
            rows = _with(rows, spent_at(record, reported.model))
    return _with(rows, _spent(model, cache))


def spent_at(record: CallRecord, model: CalledModel | None = None) -> ModelSpending:
    """What one call has cost. `model`: the one that has answered, where it is not the record's."""
    return _spent(model or record.model, record.cache)


def spent_by(records: Iterable[CallRecord]) -> list[ModelSpending]:
    """The sums of these calls."""
    rows: list[ModelSpending] = []
    listed = list(records)
    answered = answered_by(listed)
    for record in listed:
        rows = _with(rows, spent_at(record, answered.get(record.id)))
    return rows


def answered_by(records: Iterable[CallRecord]) -> dict[str, CalledModel]:
    """By the id of a call, the model that has answered it, where that is not the record's."""
    reports = ((record.session, record.cache.reported) for record in records)
    return {
        call_id(session, reported.call): reported.model
        for session, reported in reports
        if reported is not None and reported.model is not None
    }


def _spent(model: CalledModel, cache: CachePrediction) -> ModelSpending:
    # A call that went out without us counts on neither side.
    if cache.rule is None or cache.baseline is None:
        return ModelSpending(model.name, model.input_price, 0, 0.0, 0.0)
    sent = PromptTokens(cache.read or 0, cache.written or 0, cache.fresh or 0).cost(model)
    return ModelSpending(model.name, model.input_price, 1, cache.baseline.cost(model), sent)


def _with(rows: Sequence[ModelSpending], more: ModelSpending) -> list[ModelSpending]:
    if not more.calls:
        return list(rows)
    sums: Mapping[tuple[str, float], ModelSpending] = {(row.model, row.price): row for row in rows}
    key = more.model, more.price
    row = sums.get(key, ModelSpending(*key, 0, 0.0, 0.0))
    plain, ours = round(row.plain + more.plain, 1), round(row.ours + more.ours, 1)
    sums = {**sums, key: ModelSpending(*key, row.calls + more.calls, plain, ours)}
    return [row for row in sums.values() if row.calls]


def _negative(spent: ModelSpending) -> ModelSpending:
    return spent._replace(calls=-spent.calls, plain=-spent.plain, ours=-spent.ours)
