"""Which messages lose their text when a user has old ones pruned.

Those that are old, that a summary or an observation replaces, and that no open task is linked
to. Tool results, files and other objects are no messages: they stay, and so does every text that
one of them, or a message that stays, needs. What is left of a message is written first, then its
text goes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foredeck.errors import UnknownSession
from foredeck.model.calls import CallRecord
from foredeck.model.canonical import canonical_json, decode_text
from foredeck.model.documents import session_object_id
from foredeck.model.messages import WORDS_LEFT, MessageKey, marked, put_blob, unpack
from foredeck.model.names import UNSPACED, composed, pairs
from foredeck.model.observations import CompactionDocument
from foredeck.model.records import (
    ARCHIVED,
    ArchivedDocument,
    archived_id,
    call_id,
    messages_of_turn,
)
from foredeck.observations.reading import stored_notes
from foredeck.search.secrets import mask_secrets
from foredeck.search.texts import said_by, thinking_of, time_of
from foredeck.store.erasing import Erasure, ErasureStep
from foredeck.store.protocol import Advance, Batch, Head, LocalStore, ScanMark, Store, portions
from foredeck.store.references import in_message
from foredeck.store.sessions import ancestry

_CHUNK = 500


@dataclass(slots=True)
class Pruning:
    """What goes of one session.

    messages  by the address of a message: what is left of it, as stored
    texts     hashes of the longer texts that go
    bytes     how much less there is afterwards
    young, uncovered, linked  how many messages stay: for their age, because nothing replaces
              them, because an open task is linked to them
    """

    session: str
    messages: Mapping[str, bytes] = field(default_factory=dict)
    texts: tuple[str, ...] = ()
    bytes: int = 0
    young: int = 0
    uncovered: int = 0
    linked: int = 0


@dataclass(slots=True)
class _Found:
    """What may go of one session, before it is known what others need."""

    plan: Pruning
    stretches: list[CompactedStretch]
    messages: dict[str, bytes] = field(default_factory=dict)
    """The stored form by address."""
    turns: set[str] = field(default_factory=set)
    """Ids of the turns all of whose messages may go."""
    stays: set[str] = field(default_factory=set)
    """Addresses of messages that stay."""


def plan_pruning(
    store: LocalStore, sessions: Sequence[str], before_ms: int, advance: Advance = lambda: None
) -> tuple[list[Pruning], ScanMark]:
    """What goes of these sessions, and how far the store was read for it. `before_ms`: what was
    written earlier is old. Sessions of which nothing goes have a plan as well.

    Reads the whole store once. Raises `UnknownSession`, and `StoreUnavailable` where it is not
    known what others need.
    """
    for session in sessions:
        if store.head(session_object_id(session)) is None:
            raise UnknownSession(f"No session {session!r} is stored.")
    linked = linked_to_open_tasks(store)
    found = []
    for session in sessions:
        found.append(_found_in(store, session, before_ms, linked))
        advance()
    candidates = {digest for one in found for digest in _candidates(one)}
    needed, scanned = store.needed(candidates, _not_asked(store, found), advance)
    needed |= _contents_of_summaries(store, sessions)
    return [_plan(store, one, needed) for one in found], scanned


def _found_in(store: Store, session: str, before_ms: int, linked: OpenTaskLinks) -> _Found:
    found = _Found(Pruning(session), summarised(store, session))
    covered = observed(store, session).union(*(each.addresses for each in found.stretches))
    for turns in portions(store.query("turn", {"session": session}), _CHUNK):
        stored = store.blobs(
            {address for turn in turns for address in messages_of_turn(turn.fields)}
        )
        for turn in turns:
            messages = {a: stored[a] for a in messages_of_turn(turn.fields) if a in stored}
            _sort_out(found, turn, messages, covered, before_ms, linked.has(session, turn))
    for address in found.stays:
        found.messages.pop(address, None)
    return found


def _sort_out(
    found: _Found,
    turn: Head,
    messages: Mapping[str, bytes],
    covered: set[str],
    before_ms: int,
    is_linked: bool,
) -> None:
    """Which messages of a turn may go, and why the others stay."""
    staying = len(found.stays)
    for address, data in messages.items():
        message = json.loads(decode_text(data))
        if time_of(message, turn.time_ms) >= before_ms:
            found.plan.young += 1
        elif address not in covered:
            found.plan.uncovered += 1
        elif is_linked:
            found.plan.linked += 1
        elif "summary" not in message:  # a summary replaces other messages
            found.messages[address] = data
            continue
        found.stays.add(address)
    if len(found.stays) == staying:
        found.turns.add(turn.id)


def _candidates(found: _Found) -> Iterator[str]:
    """Hashes of all that may go."""
    for address, data in found.messages.items():
        yield address
        yield from in_message(data)
    for stretch in found.stretches:
        yield from stretch.texts


def _not_asked(store: Store, found: Iterable[_Found]) -> set[str]:
    """Ids of the documents that make do with what is left of a message."""
    ids: set[str] = set()
    for one in found:
        ids |= one.turns
        for type in ("call", "compaction"):
            ids.update(head.id for head in store.query(type, {"session": one.plan.session}))
    return ids


def _contents_of_summaries(store: Store, sessions: Iterable[str]) -> set[str]:
    """Hashes of the summaries themselves, which stay."""
    return {
        str(version.fields.get("text_hash"))
        for session in sessions
        for head in store.query("compaction", {"session": session})
        for version in store.history(head.id)
    }


def _plan(store: Store, found: _Found, needed: set[str]) -> Pruning:
    going = {address: data for address, data in found.messages.items() if address not in needed}
    texts = set[str]().union(*map(in_message, going.values()))
    for stretch in found.stretches:
        # What a compaction holds of its turns goes with the last of their messages.
        if not any(a in found.stays or a in needed for a in stretch.addresses):
            texts |= stretch.texts
    texts -= needed
    sizes = {digest: len(data) for digest, data in store.blobs(texts).items()}
    stubs = {
        address: canonical_json(stub_of(json.loads(decode_text(data)), store.blob))
        for address, data in going.items()
    }
    freed = sum(map(len, going.values())) + sum(sizes.values()) - sum(map(len, stubs.values()))
    plan = found.plan
    plan.messages, plan.texts, plan.bytes = stubs, tuple(sorted(sizes)), freed
    return plan


@dataclass(frozen=True, slots=True)
class CompactedStretch:
    """Messages that were compacted: their addresses, and the blobs that hold them turn by turn."""

    addresses: frozenset[str]
    texts: frozenset[str]


def summarised(store: Store, session: str) -> list[CompactedStretch]:
    """The spans of chat that compactions of the session replaced.

    Not those whose messages the host's list has again: the user has taken them back, or gone back
    to where they were, also while no engine was there to see it.
    """
    heads = [
        h for h in store.query("compaction", {"session": session}) if not h.fields.get("taken_back")
    ]
    listed = {entry for entry, _ in _newest_list(store, session)} if heads else set()
    found = []
    for head in heads:
        entries = head.fields.get("entries") or []
        # What foredeck itself leaves out of a prompt is in the host's list all along.
        is_hosts = head.fields.get("asked_by") != "window"
        if is_hosts and entries and entries[0] in listed - {None}:
            continue
        keys = _keys_at(store, call_id(session, head.view(CompactionDocument).call))
        if addresses := _between(keys, entries):
            texts = frozenset(marked(head.fields.get("turns")))
            found.append(CompactedStretch(frozenset(addresses), texts))
    return found


def observed(store: Store, session: str) -> set[str]:
    """The addresses of the messages that observations of the session replace."""
    there = [one for one in stored_notes(store, [session]).observations if not one.is_deleted]
    return {address for one in there for address in one.document.covers}


def _between(keys: list[MessageKey], entries: list[Any]) -> list[str]:
    """The addresses from the first of two entries to the last one.

    The last may have come after this call: then all from the first one on. Where
    the first is not among them, they are of another branch: none.
    """
    places = {entry: place for place, (entry, _) in enumerate(keys) if entry is not None}
    if len(entries) != 2 or entries[0] not in places:
        return []
    last = places.get(entries[1], len(keys) - 1)
    return [address for _, address in keys[places[entries[0]] : last + 1]]


def _newest_list(store: Store, session: str) -> list[MessageKey]:
    """The list of messages that the host had at the session's newest call."""
    calls = store.query("call", {"session": session})
    newest = max(calls, key=lambda head: CallRecord(head.fields).ordinal, default=None)
    return [] if newest is None else _keys_at(store, newest.id)


def _keys_at(store: Store, call: str) -> list[MessageKey]:
    """The list of messages that the host had at a call."""
    keys: list[MessageKey] = []
    for head in reversed([*_chain(store, call)]):
        record = CallRecord(head.fields)
        del keys[record.shared :]
        keys.extend(record.keys)
    return keys


def _chain(store: Store, call: str) -> Iterator[Head]:
    """The records of a branch, the newest first, also those of the sessions it was forked from."""
    seen: set[str] = set()
    head = store.head(call)
    while head is not None and head.id not in seen:
        seen.add(head.id)
        yield head
        parent = head.fields.get("parent")
        head = None if parent is None else store.head(parent)


@dataclass(frozen=True, slots=True)
class OpenTaskLinks:
    """Open tasks, by id, and what they are linked to: sessions and other objects.

    A link to some turns of a chat counts for the whole session, with those that it is a fork of:
    turns are numbered along a branch, and which turn has a number on which branch is not stored.
    """

    tasks: set[str] = field(default_factory=set)
    sessions: set[str] = field(default_factory=set)
    objects: set[str] = field(default_factory=set)

    def has(self, session: str, turn: Head) -> bool:
        """Whether one of them is linked to this turn, or to a call in it."""
        fields = turn.fields
        return (
            session in self.sessions
            or fields.get("task") in self.tasks
            or turn.id in self.objects
            or not self.objects.isdisjoint(fields.get("toolcall_ids") or ())
        )


def linked_to_open_tasks(store: Store) -> OpenTaskLinks:
    """What the store's open tasks are linked to."""
    linked = OpenTaskLinks()
    for task in store.query("task"):
        if task.fields.get("status") == "closed":
            continue
        linked.tasks.add(task.id)
        for link in task.fields.get("links") or ():
            kind, _, rest = str(link["object"]).partition(":")
            if kind in ("chat", "compaction"):
                session = rest.rpartition(":")[0] if kind == "compaction" else rest
                linked.sessions.update(ancestry(store, session))
            else:
                linked.objects.add(link["object"])
    return linked


_WORD = re.compile(rf"[{UNSPACED}]+|[^\W{UNSPACED}](?:[./-]*[^\W{UNSPACED}])*")
_KEPT = frozenset(
    {
        *("role", "timestamp", "api", "provider", "model", "usage", "stopReason"),
        *("customType", "display", "toolCallId", "toolName", "isError"),
    }
)
"""Fields of a message that hold none of its text."""
_OF_CALL = ("type", "id", "name", "arguments")


def stub_of(packed: Mapping[str, Any], blob: Callable[[str], bytes]) -> dict[str, Any]:
    """A stored message (in its packed form) without its text.

    Each of its blocks stays in its place, since prompts name blocks by number; tool calls keep
    their arguments, which are those of the call's own object. Under `WORDS_LEFT` are its distinct
    words, secrets left out: neither their order nor their number, but it is still found by them.
    """
    message = unpack(dict(packed), blob)
    words = {"said": words_of(said_by(message)), "thinking": words_of(thinking_of(message))}
    stub = {name: value for name, value in packed.items() if name in _KEPT}
    stub["content"] = _content(packed.get("content"))
    stub[WORDS_LEFT] = {kind: text for kind, text in words.items() if text}
    return stub


def words_of(text: str) -> str:
    """The distinct words of a text, sorted, with a space between."""
    runs = set(_WORD.findall(composed(mask_secrets(text))))
    return " ".join(sorted({word for run in runs for word in pairs(run)}))


def _content(content: Any) -> Any:
    if isinstance(content, list):
        return [_block(block) for block in content]
    return ARCHIVED


def _block(block: Any) -> dict[str, Any]:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "toolCall":
        return {name: block[name] for name in _OF_CALL if name in block}
    if kind == "thinking":
        return {"type": kind, kind: ARCHIVED}
    return {"type": "text", "text": ARCHIVED}


def erasure_of(store: Store, plans: Iterable[Pruning], scanned: ScanMark) -> Erasure:
    """What the plans of one call of `plan_pruning` take away, all at once, and what they leave."""
    plans = [plan for plan in plans if plan.messages or plan.texts]
    gone = {digest for plan in plans for digest in (*plan.messages, *plan.texts)}
    step = ErasureStep([plan.session for plan in plans], [], sorted(gone), scanned)
    return Erasure([_what_is_left(store, plan) for plan in plans], [step] if gone else [])


def _what_is_left(store: Store, plan: Pruning) -> Batch:
    id = archived_id(plan.session)
    head, before = store.head(id), store.get(id, ArchivedDocument)
    record = before or ArchivedDocument(id=id, session=plan.session)
    batch = Batch(expect={id: None if head is None else head.token})
    for address, stub in plan.messages.items():
        record.messages[address] = {"$json": put_blob(stub, batch.blobs)}
    record.texts = sorted({*record.texts, *plan.texts})
    batch.puts.append(record.seal())
    return batch
