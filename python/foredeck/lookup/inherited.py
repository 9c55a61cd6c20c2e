"""The turns that a fork has from the sessions it descends from: those on the path to where it left.

They stay documents of the session that they were made in; a fork's call records tell which of them
its chat begins with, across compactions too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from foredeck.context.state.call_log import CallLog, load_record
from foredeck.model.canonical import hash_text
from foredeck.model.documents import session_object_id
from foredeck.model.messages import load_message
from foredeck.model.observations import CompactionDocument
from foredeck.model.records import call_id, forgotten_id
from foredeck.store.protocol import Head, Store
from foredeck.store.sessions import ancestry


@dataclass(frozen=True, slots=True)
class Inherited:
    """What a chat begins with. `gone`: the session whose turns would come before `turns` and are
    not in the store, None where nothing is missing; `forgotten`: whether the user erased it."""

    turns: tuple[Head, ...] = ()
    gone: str | None = None
    forgotten: bool = False


def inherited_turns(store: Store, session: str) -> Inherited:
    """The inherited turns of a session's chat, oldest first; none for one that is no fork."""
    ancestors, gone = _ancestors(store, session)
    if not ancestors and gone is None:
        return Inherited()
    path = set(_first_path(store, session, [session, *ancestors]))
    path -= {head.fields.get("assistant") for head in turns_of_session(store, session)}
    found: dict[str, Head] = {}
    for ancestor in reversed(ancestors):
        for head in turns_of_session(store, ancestor):
            address = head.fields.get("assistant")
            if address in path:
                found.setdefault(address, head)
    if gone is None or not path:
        return Inherited(tuple(found.values()))
    return Inherited(tuple(found.values()), gone, store.head(forgotten_id(gone)) is not None)


def turns_of_session(store: Store, session: str) -> list[Head]:
    """The turns that were made in a session, on all its branches, in the order of their making."""
    return sorted(store.query("turn", {"session": session}), key=_number)


def _number(head: Head) -> int:
    return int(head.id.rpartition(":")[2])


def _ancestors(store: Store, session: str) -> tuple[list[str], str | None]:
    """The sessions that this one descends from, nearest first, and the one after them that the
    store does not have."""
    _, *found = ancestry(store, session)
    if found and store.head(session_object_id(found[-1])) is None:
        return found[:-1], found[-1]
    return found, None


def addresses_back(
    store: Store,
    messages: Sequence[str],
    lineage: Sequence[str],
    blob: Callable[[str], bytes] | None = None,
) -> Iterator[str]:
    """Addresses of the messages in a list, back to the very first: where it begins with a summary,
    those of the list that this was made of come before. `lineage`: ids of the sessions in which
    that may have been; `blob` reads messages that may not be stored yet."""
    seen: set[str] = set()
    while messages:
        yield from messages
        id = _compacted_at(store, messages[0], lineage, blob or store.blob)
        messages = [] if id is None or id in seen else _listed(store, id)
        seen.add(id or "")


def _first_path(store: Store, session: str, lineage: Sequence[str]) -> Iterator[str]:
    """Those of the list that the session's first call continued."""
    return addresses_back(store, _listed(store, call_id(session, 1)), lineage)


def _listed(store: Store, call: str) -> list[str]:
    keys = CallLog().replay(call, partial(load_record, store)).keys
    return [key.address for key in keys]


def _compacted_at(
    store: Store, address: str, lineage: Sequence[str], blob: Callable[[str], bytes]
) -> str | None:
    """Id of the call after which the summary in this message took the place of chat."""
    summary = load_message(address, blob).get("summary")
    if not isinstance(summary, str):
        return None
    digest = hash_text(summary)
    for session in lineage:
        for head in store.query("compaction", {"session": session}):
            if head.fields.get("text_hash") == digest:
                return call_id(session, head.view(CompactionDocument).call)
    return None
