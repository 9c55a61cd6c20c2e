"""What keeps a message from being pruned: tasks that are not finished."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from foredeck.model.documents import session_object_id
from foredeck.store.protocol import Head, Store


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
                linked.sessions.update(_lineage(store, session))
            else:
                linked.objects.add(link["object"])
    return linked


def _lineage(store: Store, session: str) -> Iterator[str]:
    """A session, and those that it is a fork of."""
    seen: set[str] = set()
    name: str | None = session
    while name is not None and name not in seen:
        seen.add(name)
        yield name
        head = store.head(session_object_id(name))
        name = None if head is None else head.fields.get("parent_session")
