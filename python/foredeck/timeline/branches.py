"""Which changes belong to a branch: those of the answers that its later calls still have."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise

from foredeck.model.calls import CallRecord, in_order
from foredeck.model.canonical import hash_text
from foredeck.model.observations import CompactionDocument
from foredeck.model.records import FileChangeDocument, call_id
from foredeck.store.protocol import Head, Store
from foredeck.store.references import stored_messages

_SUMMARY = b'"compactionSummary"'


def chain_to(store: Store, call: str | None) -> list[CallRecord]:
    """A call and those before it on its branch, of all sessions, the oldest first."""
    # A call whose list begins with a summary may continue no other one's list; then those that the
    # summary replaces come before it.
    found: dict[str, CallRecord] = {}
    while call is not None and call not in found and (head := store.head(call)) is not None:
        found[call] = CallRecord(head.fields)
        call = found[call].parent or _summarised(store, found[call])
    return list(reversed(found.values()))


def _summarised(store: Store, record: CallRecord) -> str | None:
    """The newest call that is covered by the summary a list begins with; None for no summary."""
    first = next(record.addresses, None) if record.shared == 0 else None
    blob = None if first is None else store.blobs([first]).get(first)
    message = None if blob is None else json.loads(blob)
    if not isinstance(message, dict) or message.get("role") != "compactionSummary":
        return None
    text = message.get("summary")
    digest = text.get("$text") if isinstance(text, dict) else hash_text(str(text))
    calls = [
        head.view(CompactionDocument).call
        for head in store.query("compaction", {"session": record.session})
        if head.fields.get("text_hash") == digest
    ]
    # A summary of somebody else's: it was made when the newest call was the one before.
    ordinal = max((call for call in calls if call < record.ordinal), default=record.ordinal - 1)
    return call_id(record.session, ordinal) if ordinal > 0 else None


def on_branch(
    store: Store, branch: Sequence[CallRecord], heads: Sequence[Head], *, with_last: bool
) -> set[str]:
    """Ids of the changes that the branch's answers have made before its last call. `with_last`:
    those of the last call's own answer too."""
    by_call: dict[str, list[Head]] = {}
    for head in heads:
        if (call := head.fields.get("call")) is not None:
            by_call.setdefault(call, []).append(head)
    ids = {record.id for record in branch}
    # After a compaction that was taken back the chat has calls that its records do not follow.
    elsewhere = [head for call, made in by_call.items() if call not in ids for head in made]
    found: set[str] = set()
    if elsewhere and branch:
        found |= _named(store, branch[0], elsewhere)
    # A call's answer may have been given up: then the next call on the branch does not have it.
    for record, following in pairwise(branch):
        if made := by_call.get(record.id):
            found |= _still_there(store, record, following, made)
        if elsewhere:
            found |= _named(store, following, elsewhere)
    if with_last and branch:
        found |= {head.id for head in by_call.get(branch[-1].id, ())}
    return found


def _still_there(
    store: Store, record: CallRecord, following: CallRecord, made: Sequence[Head]
) -> set[str]:
    if following.shared < record.length:
        messages = stored_messages(store, following.addresses).values()
        if any(_SUMMARY in message for message in messages):
            return {head.id for head in made}  # compacted, not given up
    return _named(store, following, made)


def _named(store: Store, record: CallRecord, made: Sequence[Head]) -> set[str]:
    """The changes whose tool calls a call's new messages name."""
    messages = list(stored_messages(store, record.addresses).values())
    return {head.id for head in made if any(_name(head) in message for message in messages)}


def _name(head: Head) -> bytes:
    """The tool call as a message names it; of one inside a script, the script's."""
    return json.dumps(head.view(FileChangeDocument).tool_call.partition("/")[0]).encode()


def records_of(store: Store, session: str) -> list[CallRecord]:
    """All calls of a session, over all its branches, in their order."""
    return in_order(head.fields for head in store.query("call", {"session": session}))
