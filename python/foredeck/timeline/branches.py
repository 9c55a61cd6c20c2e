"""Changes of a branch: those by answers that later calls still have."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from foredeck.model.calls import CallRecord, in_order
from foredeck.model.identity import hash_text
from foredeck.model.messages import load_message, text_in
from foredeck.model.observations import CompactionDocument
from foredeck.model.records import FileChangeDocument, call_id
from foredeck.store.protocol import Head
from foredeck.store.sessions import stored_messages
from foredeck.store.store import Store

_SUMMARY = b'"compactionSummary"'


def chain_to(store: Store, call: str | None) -> list[CallRecord]:
    """A call and its predecessors, across sessions, oldest first."""
    # A call whose list begins with a summary may continue no other one's list; then those that the
    # summary replaces come before it.
    records: dict[str, CallRecord] = {}
    heads: dict[str, Head] = {}
    while call is not None and call not in records:
        if call not in heads:
            # With all earlier ones of its session: one question to the store for thousands.
            session, _, ordinal = call.removeprefix("call:").rpartition(":")
            heads |= store.heads(call_id(session, n) for n in range(1, int(ordinal) + 1))
        if (head := heads.get(call)) is None:
            break
        records[call] = CallRecord(head.fields)
        call = records[call].parent or _summarised(store, records[call])
    return list(reversed(records.values()))


def _summarised(store: Store, record: CallRecord) -> str | None:
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
    """Ids of changes by the branch's answers; `with_last`: also by the last call's."""
    by_call: dict[str, list[Head]] = {}
    for head in heads:
        if (call := head.fields.get("call")) is not None:
            by_call.setdefault(call, []).append(head)
    ids = {record.id for record in branch}
    # After a compaction that was taken back the chat has calls that its records do not follow.
    elsewhere = [head for call, changes in by_call.items() if call not in ids for head in changes]
    ids_found: set[str] = set()
    if elsewhere and branch:
        ids_found |= _named(store, branch[0], elsewhere)
    # A call's answer may have been given up: then the next call on the branch does not have it.
    for record, following in pairwise(branch):
        if changes := by_call.get(record.id):
            ids_found |= _still_there(store, record, following, changes)
        if elsewhere:
            ids_found |= _named(store, following, elsewhere)
    if with_last and branch:
        ids_found |= {head.id for head in by_call.get(branch[-1].id, ())}
    return ids_found


def _still_there(
    store: Store, record: CallRecord, following: CallRecord, made: Sequence[Head]
) -> set[str]:
    if following.shared < record.length:
        messages = stored_messages(store, following.addresses).values()
        if any(_SUMMARY in message for message in messages):
            return {head.id for head in made}  # compacted, not given up
    return _named(store, following, made)


def _named(store: Store, record: CallRecord, made: Sequence[Head]) -> set[str]:
    messages = list(stored_messages(store, record.addresses).values())
    return {head.id for head in made if any(_name(head) in message for message in messages)}


def _name(head: Head) -> bytes:
    return json.dumps(head.view(FileChangeDocument).tool_call.partition("/")[0]).encode()


def prompt_of(store: Store, record: CallRecord) -> str:
    """What the user had said last before a call, on one line."""
    call: CallRecord | None = record
    end = record.length
    while call is not None:
        for key in reversed(call.keys[: max(0, end - call.shared)]):
            if text := users_words(load_message(key.address, store.blob)):
                return text
        end = min(end, call.shared)
        head = store.head(call.parent) if call.parent else None
        call = None if head is None else CallRecord(head.fields)
    return ""


def users_words(message: Mapping[str, Any]) -> str:
    content = message.get("content") if message.get("role") == "user" else None
    return " ".join(text_in(content).split())


def records_of(store: Store, session: str) -> list[CallRecord]:
    return in_order(head.fields for head in store.query("call", {"session": session}))
