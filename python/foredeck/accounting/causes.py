"""Why a prompt that was in the cache was not found there again.

What would have been lost with unchanged bytes is put down to that: another model, other tools or
system prompt, expiry, a list that the host or another extension has changed. Only what is lost
beyond it is ours: a rebase, and why; or a call that went out without us. What is left has no
explanation, and is a defect.
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
FORCED = frozenset({"high-water", "window"})


def common_messages(last: StoredCall, call: StoredCall) -> int:
    """How many of the host's messages two calls share from the beginning."""
    pairs = zip(last.keys, call.keys, strict=False)
    shared = (n for n, (one, other) in enumerate(pairs) if one.address != other.address)
    return next(shared, min(len(last.keys), len(call.keys)))


def continues(last: StoredCall, call: StoredCall) -> bool:
    """Whether a call was made to go on from the one before it."""
    return call.record.parent == call_id(last.record.session, last.ordinal)


def cause_around(last: StoredCall, call: StoredCall, *, expired: bool) -> Cause | None:
    """Why nothing could be found, whatever the messages say; None where there is no such cause."""
    if last.record.model.name != call.record.model.name:
        return "model switch"
    if last.around.hash != call.around.hash:
        return "system prompt or tools"
    return "expiry" if expired else None


def cause_in_list(last: StoredCall, call: StoredCall, index: int) -> Cause:
    """Who has changed the host's list from message `index` on.

    Messages of other extensions have no entry in the host's session, or change under an entry
    that stays; a branch and a compaction bring other entries.
    """
    if "compactionSummary" in call.roles[: index + 1]:
        return "host edit: compaction"
    old = last.keys[index] if index < len(last.keys) else None
    new = call.keys[index] if index < len(call.keys) else None
    if old is not None and new is not None and old.entry is not None and old.entry == new.entry:
        return "another extension"
    entries = any(key.entry is not None for key in (*last.keys, *call.keys))
    if entries and (_comes(old, call.keys, last.keys) or _comes(new, last.keys, call.keys)):
        return "another extension"
    return "host edit: branch"


def _comes(key: MessageKey | None, others: Sequence[MessageKey], own: Sequence[MessageKey]) -> bool:
    """Whether a message stands in one list only, without an entry, between messages of both."""
    if key is None or key.entry is not None or key.address in {k.address for k in others}:
        return False
    after = own[next(n for n, k in enumerate(own) if k is key) + 1 :]
    return bool({k.address for k in after} & {k.address for k in others})


def cause_of_ours(last: StoredCall, call: StoredCall) -> Cause:
    """Why bytes of ours have changed at a call: by its decision, or because the one before went
    out without them."""
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
