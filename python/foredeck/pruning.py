"""Which old messages lose their text: those that something replaces and no open task links to.

Remains are written before texts go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from foredeck.context.state.call_log import CallLog, load_record
from foredeck.errors import UnknownSession
from foredeck.model.calls import CallRecord
from foredeck.model.documents import session_object_id
from foredeck.model.identity import canonical_json, decode_text
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
from foredeck.store.protocol import Advance, Batch, Head, ScanMark, portions
from foredeck.store.references import in_message
from foredeck.store.sessions import ancestry
from foredeck.store.store import Store

_CHUNK = 500


@dataclass(slots=True)
class Pruning:
    """What goes of one session.

    `messages`: what is left, by address; `texts`: hashes of longer texts that go; `young`,
    `uncovered`, `linked`: messages that stay, by reason.
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
    plan: Pruning
    stretches: list[CompactedStretch]
    messages: dict[str, bytes] = field(default_factory=dict)
    """The stored form by address."""
    turns: set[str] = field(default_factory=set)
    """Turns whose messages may all go."""
    stays: set[str] = field(default_factory=set)
    """Addresses of messages that stay."""


def plan_pruning(
    store: Store, sessions: Sequence[str], before_ms: int, advance: Advance = lambda: None
) -> tuple[list[Pruning], ScanMark]:
    """Plans pruning sessions. Raises `UnknownSession`, and `StoreUnavailable` if others' needs are
    unknown."""
    for session in sessions:
        if store.head(session_object_id(session)) is None:
            raise UnknownSession(f"No session {session!r} is stored.")
    linked = linked_to_open_tasks(store)
    plans = []
    for session in sessions:
        plans.append(_found_in(store, session, before_ms, linked))
        advance()
    candidates = {digest for one in plans for digest in _candidates(one)}
    needed, scanned = store.needed(candidates, _not_asked(store, plans), advance)
    needed |= _contents_of_summaries(store, sessions)
    return [_plan(store, one, needed) for one in plans], scanned


def _found_in(store: Store, session: str, before_ms: int, linked: OpenTaskLinks) -> _Found:
    plan = _Found(Pruning(session), summarised(store, session))
    covered = observed(store, session).union(*(each.addresses for each in plan.stretches))
    for turns in portions(store.query("turn", {"session": session}), _CHUNK):
        stored = store.blobs(
            {address for turn in turns for address in messages_of_turn(turn.fields)}
        )
        for turn in turns:
            messages = {a: stored[a] for a in messages_of_turn(turn.fields) if a in stored}
            _sort_out(plan, turn, messages, covered, before_ms, linked.has(session, turn))
    for address in plan.stays:
        plan.messages.pop(address, None)
    return plan


def _sort_out(
    found: _Found,
    turn: Head,
    messages: Mapping[str, bytes],
    covered: set[str],
    before_ms: int,
    is_linked: bool,
) -> None:
    """Which messages of a turn may go, and why others stay."""
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
    for address, data in found.messages.items():
        yield address
        yield from in_message(data)
    for stretch in found.stretches:
        yield from stretch.texts


def _not_asked(store: Store, found: Iterable[_Found]) -> set[str]:
    ids: set[str] = set()
    for one in found:
        ids |= one.turns
        for type in ("call", "compaction"):
            ids.update(head.id for head in store.query(type, {"session": one.plan.session}))
    return ids


def _contents_of_summaries(store: Store, sessions: Iterable[str]) -> set[str]:
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
    addresses: frozenset[str]
    texts: frozenset[str]


def summarised(store: Store, session: str) -> list[CompactedStretch]:
    """Spans that a session's compactions replaced, without those in the host's list again."""
    heads = [
        h for h in store.query("compaction", {"session": session}) if not h.fields.get("taken_back")
    ]
    listed = {entry for entry, _ in _newest_list(store, session)} if heads else set()
    spans = []
    for head in heads:
        entries = head.fields.get("entries") or []
        # What foredeck itself leaves out of a prompt is in the host's list all along.
        is_hosts = head.fields.get("asked_by") != "window"
        if is_hosts and entries and entries[0] in listed - {None}:
            continue
        keys = _keys_at(store, call_id(session, head.view(CompactionDocument).call))
        if addresses := _between(keys, entries):
            texts = frozenset(marked(head.fields.get("turns")))
            spans.append(CompactedStretch(frozenset(addresses), texts))
    return spans


def observed(store: Store, session: str) -> set[str]:
    """Addresses of messages that observations replace."""
    there = [one for one in stored_notes(store, [session]).observations if not one.is_deleted]
    return {address for one in there for address in one.document.covers}


def _between(keys: list[MessageKey], entries: list[Any]) -> list[str]:
    """Addresses between two entries: without the last, to the end; without the first, none."""
    places = {entry: place for place, (entry, _) in enumerate(keys) if entry is not None}
    if len(entries) != 2 or entries[0] not in places:
        return []
    last = places.get(entries[1], len(keys) - 1)
    return [address for _, address in keys[places[entries[0]] : last + 1]]


def _newest_list(store: Store, session: str) -> list[MessageKey]:
    calls = store.query("call", {"session": session})
    newest = max(calls, key=lambda head: CallRecord(head.fields).ordinal, default=None)
    return [] if newest is None else _keys_at(store, newest.id)


def _keys_at(store: Store, call: str) -> list[MessageKey]:
    return CallLog().sent(call, partial(load_record, store)).keys


@dataclass(frozen=True, slots=True)
class OpenTaskLinks:
    """A link to turns counts for the whole session, since turn numbers differ by branch."""

    tasks: set[str] = field(default_factory=set)
    sessions: set[str] = field(default_factory=set)
    objects: set[str] = field(default_factory=set)

    def has(self, session: str, turn: Head) -> bool:
        fields = turn.fields
        return (
            session in self.sessions
            or fields.get("task") in self.tasks
            or turn.id in self.objects
            or not self.objects.isdisjoint(fields.get("toolcall_ids") or ())
        )


def linked_to_open_tasks(store: Store) -> OpenTaskLinks:
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
"""Fields of a message without its text."""
_OF_CALL = ("type", "id", "name", "arguments")


def stub_of(packed: Mapping[str, Any], blob: Callable[[str], bytes]) -> dict[str, Any]:
    """A message without its text; `WORDS_LEFT` has its words, so that search finds it."""
    message = unpack(dict(packed), blob)
    words = {"said": words_of(said_by(message)), "thinking": words_of(thinking_of(message))}
    stub = {name: value for name, value in packed.items() if name in _KEPT}
    stub["content"] = _content(packed.get("content"))
    stub[WORDS_LEFT] = {kind: text for kind, text in words.items() if text}
    return stub


def words_of(text: str) -> str:
    """A text's distinct words, sorted."""
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
    """The erasure for one `plan_pruning`, with what it leaves."""
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
