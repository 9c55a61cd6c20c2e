"""Which changes belong to a branch: those of the answers that its later calls still have."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise

from foredeck.model.calls import CallRecord
from foredeck.store.protocol import Head, Store

_SUMMARY = b'"compactionSummary"'


def chain_to(store: Store, call: str | None) -> list[CallRecord]:
    """A call and those before it on its branch, of all sessions, the oldest first."""
    found: dict[str, CallRecord] = {}
    while call is not None and call not in found and (head := store.head(call)) is not None:
        found[call] = CallRecord(head.fields)
        call = found[call].parent
    return list(reversed(found.values()))


def on_branch(
    store: Store, branch: Sequence[CallRecord], heads: Iterable[Head], *, with_last: bool
) -> set[str]:
    """Ids of the changes that the branch's answers have made before its last call.

    A call's answer may have been given up: then the next call on the branch does not have it.
    `with_last`: those of the last call's own answer too.
    """
    by_call: dict[str, list[Head]] = {}
    for head in heads:
        if (call := head.fields.get("call")) is not None:
            by_call.setdefault(call, []).append(head)
    found: set[str] = set()
    for record, following in pairwise(branch):
        if made := by_call.get(record.id):
            found |= _still_there(store, record, following, made)
    if with_last and branch:
        found |= {head.id for head in by_call.get(branch[-1].id, ())}
    return found


def _still_there(
    store: Store, record: CallRecord, following: CallRecord, made: Sequence[Head]
) -> set[str]:
    messages = list(store.blobs(following.addresses).values())
    if following.kept < record.length and any(_SUMMARY in message for message in messages):
        return {head.id for head in made}  # put away, not given up
    return {head.id for head in made if any(_name(head) in message for message in messages)}


def _name(head: Head) -> bytes:
    """The tool call as a message names it; of one inside a script, the script's."""
    return json.dumps(str(head.fields["tool_call"]).partition("/")[0]).encode()
