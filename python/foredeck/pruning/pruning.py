"""Pruning itself: what is left is written first, then the text goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from foredeck.config import Config
from foredeck.model.archive import ArchivedDocument, archived_id
from foredeck.pruning.planning import Pruning, stored_stubs
from foredeck.store.protocol import Batch, Looked, Store
from foredeck.store.registry import store_kind
from foredeck.store.session_cache import drop_cached


def prune(
    config: Config,
    store: Store,
    plans: Sequence[Pruning],
    looked: Looked,
    advance: Callable[[str], None] = lambda _session: None,
) -> None:
    """Take away what the plans of one call of `plan_pruning` name; `advance` is called with each
    session before that.

    Where it is interrupted the text is still there, and the same can be done again. Raises
    `Conflict` where somebody has taken up some of it since the plan, and `StoreUnavailable`, also
    where commits wait for a database: what arrived there afterwards would stay.
    """
    kind = store_kind(config.store)
    kind.check_settled(config)
    plans = [plan for plan in plans if plan.messages or plan.texts]
    for plan in plans:
        advance(plan.session)
        _keep_what_is_left(store, plan)
    gone = {digest for plan in plans for digest in (*plan.messages, *plan.texts)}
    if gone:
        kind.erase(config, [], sorted(gone), looked)
    for plan in plans:
        drop_cached(config.home, plan.session)


def _keep_what_is_left(store: Store, plan: Pruning) -> None:
    id = archived_id(plan.session)
    head, before = store.head(id), store.get(id, ArchivedDocument)
    record = before or ArchivedDocument(id=id, session=plan.session)
    batch = Batch(expect={id: None if head is None else head.token})
    record.messages = {**record.messages, **stored_stubs(plan, batch.blobs)}
    record.texts = sorted({*record.texts, *plan.texts})
    batch.puts.append(record.seal())
    store.commit(batch)
