from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from foredeck.context.state.gauge import counted_chars, is_plausible
from foredeck.model.call_values import (
    UNSENT,
    Ack,
    CachePrediction,
    CalledModel,
    ModelSpending,
    PromptTokens,
    ReportedUsage,
)
from foredeck.model.calls import CallRecord
from foredeck.model.records import call_id

if TYPE_CHECKING:  # whoever asks for sums alone does without the records' branches
    from foredeck.context.state.call_log import CallLog


def spent_after(
    log: CallLog, session: str, model: CalledModel, cache: CachePrediction, acks: Sequence[Ack]
) -> list[ModelSpending]:
    """Sums after one more call, which settles earlier ones, or itself if it never goes out."""
    last = log.last
    # Each record has the sums up to its call: to know them, only the newest is read.
    rows = [] if last is None else list(last.spent)
    for ack in acks:
        id = call_id(session, ack.call)
        record = log.record(id) if ack.outcome in UNSENT and id not in log.unsent else None
        if record is not None:
            rows = _with(rows, _negative(spent_at(record)))
    if (reported := cache.reported) is not None:
        # The answer has told how many tokens it were, and which model.
        record = log.record(call_id(session, reported.call))
        unsent = {ack.call for ack in acks if ack.outcome in UNSENT}
        if record is not None and reported.call not in unsent:
            rows = _with(rows, _negative(spent_at(record)))
            rows = _with(rows, spent_at(record, reported))
    own = log.newest + 1
    is_sent = not any(ack.call == own and ack.outcome in UNSENT for ack in acks)
    return _with(rows, _spent(model, cache)) if is_sent else rows


def spent_at(record: CallRecord, reported: ReportedUsage | None = None) -> ModelSpending:
    """The cost of one call; `reported`: the provider's counts, if known."""
    if reported is None:
        return _spent(record.model, record.cache)
    spent = _spent(reported.model or record.model, record.cache)
    # Both sides are in the provider's tokens; what of them it had cached is by its rule, so that
    # what it loses of itself is on neither.
    scale = _counted(record, reported)
    return spent._replace(plain=spent.plain * scale, ours=spent.ours * scale)


def _counted(record: CallRecord, reported: ReportedUsage) -> float:
    stats, cache = record.stats, record.cache
    foreseen = (cache.read or 0) + (cache.written or 0) + (cache.fresh or 0)
    counted = reported.read + reported.written + reported.fresh
    is_sound = is_plausible(counted_chars(stats), counted - stats.image_tokens)
    return counted / foreseen if foreseen and is_sound else 1.0


def spent_by(records: Iterable[CallRecord]) -> list[ModelSpending]:
    """The sums of these calls."""
    rows: list[ModelSpending] = []
    listed = list(records)
    reports = reports_of(listed)
    for record in listed:
        rows = _with(rows, spent_at(record, reports.get(record.id)))
    return rows


def reports_of(records: Iterable[CallRecord]) -> dict[str, ReportedUsage]:
    """Provider counts by call id."""
    reports = ((record.session, record.cache.reported) for record in records)
    return {
        call_id(session, reported.call): reported
        for session, reported in reports
        if reported is not None
    }


def _spent(model: CalledModel, cache: CachePrediction) -> ModelSpending:
    # A call that went out without us counts on neither side.
    if cache.rule is None or cache.baseline is None:
        return ModelSpending(model.name, model.input_price, 0, 0.0, 0.0)
    cost = PromptTokens(cache.read or 0, cache.written or 0, cache.fresh or 0).cost(model)
    return ModelSpending(model.name, model.input_price, 1, cache.baseline.cost(model), cost)


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
