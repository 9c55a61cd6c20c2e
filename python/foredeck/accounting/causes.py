"""Why a prompt that was in the cache was not found there again.

A loss is first put down to what would have caused it whatever foredeck sends: another model, other
tools or another system prompt, expiry, a message list that the host or another extension changed.
What is lost beyond that is ours: a rebase, for its reason, or a call that went out without the
engine. Anything else is unexplained, and a defect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from foredeck.accounting.stored import StoredCall
from foredeck.model.messages import MessageKey
from foredeck.model.records import call_id

Cause = Literal[
    "expiry",
    "model switch",
    "system prompt or tools",
    "host edit: compaction",
    "host edit: branch",
    "compact or uncompact",
    "another extension",
    "rebase: free",
    "rebase: paid",
    "rebase: forced",
    "without foredeck",
    "layout",
    "provider's rule",
    "unexplained",
]

FREE = frozenset({"cold", "model", "history", "layout", "look-back"})
FORCED = frozenset({"high-water", "window", "withdrawn"})


def common_messages(last: StoredCall, call: StoredCall) -> int:
    """How many messages of the host two calls have in common at the start."""
    length = min(len(last.keys), len(call.keys))
    if continues(last, call):  # as nearly always: its record says it
        return min(length, call.record.kept)
    pairs = zip(last.keys, call.keys, strict=False)
    shared = (n for n, (one, other) in enumerate(pairs) if one.address != other.address)
    return next(shared, length)


def continues(last: StoredCall, call: StoredCall) -> bool:
    """Whether a call continues the branch of the one before it."""
    return call.record.parent == call_id(last.record.session, last.ordinal)


def cause_around(last: StoredCall, call: StoredCall, *, expired: bool) -> Cause | None:
    """Why no prefix could be found at all, whatever the messages; None where one could."""
    if last.record.model.name != call.record.model.name:
        return "model switch"
    if last.around.hash != call.around.hash:
        return "system prompt or tools"
    return "expiry" if expired else None


def cause_in_list(last: StoredCall, call: StoredCall, index: int) -> Cause:
    """Who changed the host's list from message `index` on.

    A message of another extension has no entry in the host's session file, or changes while its
    entry stays the same; a branch or a compaction brings other entries. What `/foredeck compact
    --calls` and `uncompact` put in has none either.
    """
    old = last.keys[index] if index < len(last.keys) else None
    new = call.keys[index] if index < len(call.keys) else None
    was, now = _summary_at(last, index), _summary_at(call, index)
    back = was == "host" and new is not None and new.entry is None
    if back or "ours" in (was, now):
        return "compact or uncompact"
    if now == "host":
        return "host edit: compaction"
    if old is not None and new is not None and old.entry is not None and old.entry == new.entry:
        return "another extension"
    entries = any(key.entry is not None for key in (*last.keys, *call.keys))
    if entries and (
        _is_injected(old, call.keys, last.keys) or _is_injected(new, last.keys, call.keys)
    ):
        return "another extension"
    return "host edit: branch"


def _summary_at(call: StoredCall, index: int) -> Literal["host", "ours"] | None:
    """Whether a summary stands there in the list: the host's, or one for calls that the user has
    had compacted."""
    message = call.messages[index] if index < len(call.messages) else {}
    if message.get("role") == "compactionSummary":
        return "host"
    return "ours" if message.get("customType") == "foredeck" else None


def _is_injected(
    key: MessageKey | None, others: Sequence[MessageKey], own: Sequence[MessageKey]
) -> bool:
    """Whether a message without an entry is in one list only, before a message that is in both."""
    if key is None or key.entry is not None or key.address in {k.address for k in others}:
        return False
    after = own[next(n for n, k in enumerate(own) if k is key) + 1 :]
    return bool({k.address for k in after} & {k.address for k in others})


def cause_of_ours(last: StoredCall, call: StoredCall) -> Cause:
    """Why bytes of ours changed at a call: its own decision, or because the call before went out
    without the engine."""
    decision = call.record.decision
    if decision.is_host:
        return "without foredeck"
    if call.record.layout == "pools":
        return "layout"
    if not decision.is_rebase:
        return "without foredeck" if last.record.is_host else "unexplained"
    if decision.reason in FORCED:
        return "rebase: forced"
    return "rebase: free" if decision.reason in FREE else "rebase: paid"
