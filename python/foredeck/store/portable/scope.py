"""Which documents belong to a session.

Its own documents, every object in its index with its whole history (also those that it took
over from other sessions), the nickname claims of these objects, and, for a forked session, the
calls of other sessions that its own continue: without them its prompts could not be shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from foredeck.errors import UnknownSession
from foredeck.model.archive import archived_id
from foredeck.model.documents import chat_id, session_object_id, system_prompt_id
from foredeck.model.memory import is_kept_with
from foredeck.store.protocol import Head, Store, Token

OBJECTS = (
    *("session", "chat", "system_prompt", "file", "toolcall", "user", "pointer", "compaction"),
    *("observation", "reflection", "working", "memory", "task"),
)
RANK = (
    *(*OBJECTS, "nickname", "claim", "observing", "turn", "member", "call", "change", "asked"),
    *("archived", "extraction"),
)
"""Types in the order in which a transaction's documents are written: what others pin is first."""


def documents_of(store: Store, session: str) -> list[str]:
    """Ids of all documents that belong to a session. Raises `UnknownSession`."""
    if store.head(session_object_id(session)) is None:
        raise UnknownSession(f"no session {session!r} in this store")
    own = [session_object_id(session), chat_id(session), system_prompt_id(session)]
    calls = store.query("call", {"session": session})
    turns = store.query("turn", {"session": session})
    kept = ("claim", "observation", "reflection", "observing")
    records = [
        *turns,
        *calls,
        *(h for type in kept for h in store.query(type, {"session": session})),
    ]
    members = store.query("member", {"session": session})
    toolcalls = store.query("toolcall", {"chat_ref": chat_id(session)})
    changes = store.query("change", {"session": session})
    asked = store.query("asked", {"session": session})
    asked += store.query("extraction", {"session": session})
    compactions = store.query("compaction", {"session": session})
    pages = store.query("working", {"session": session})
    pages += [h for h in store.query("memory", {"session": session}) if is_kept_with(h.fields)]
    ids = [
        *own,
        archived_id(session),
        *(
            head.id
            for head in (*records, *members, *toolcalls, *compactions, *pages, *changes, *asked)
        ),
        *(head.fields["object"] for head in members),
        *_tasks(store, session, turns),
        *_ancestors(store, calls),
    ]
    return list(dict.fromkeys(ids))


def _tasks(store: Store, session: str, turns: Iterable[Head]) -> Iterator[str]:
    """Tasks that a session has made, has claimed, or worked on."""
    yield from (task for turn in turns if isinstance(task := turn.fields.get("task"), str))
    for head in store.query("task"):
        if session in (head.fields.get("created_by"), head.fields.get("session")):
            yield head.id


def _ancestors(store: Store, calls: Iterable[Head]) -> Iterator[str]:
    """Calls of other sessions that these calls continue."""
    seen = {head.id for head in calls}
    parents = _parents(calls) - seen
    while parents:
        seen |= parents
        heads = store.heads(sorted(parents))
        yield from heads
        parents = _parents(heads.values()) - seen


def _parents(calls: Iterable[Head]) -> set[str]:
    return {id for head in calls if isinstance(id := head.fields.get("parent"), str)}


@dataclass(slots=True)
class Versions:
    """All versions that belong to a session: `(type, document id)` by transaction."""

    by_token: dict[Token, list[tuple[str, str]]] = field(default_factory=dict)

    def add(self, history: Iterable[Head]) -> None:
        """Take in the whole history of a document."""
        for head in history:
            self.by_token.setdefault(head.token, []).append((head.type, head.id))


def versions_of(store: Store, session: str) -> Versions:
    """Every version that belongs to a session. Raises `UnknownSession`."""
    ids = documents_of(store, session)
    versions = Versions()
    for id in ids:
        versions.add(store.history(id))
    known = set(ids)
    for name in store.query("nickname"):
        claims = store.history(name.id)
        if any(claim.fields.get("object") in known for claim in claims):
            versions.add(claims)
    return versions
