"""Who owns a document: the session, several sessions that met it, or one that has no part here?

A file could otherwise carry documents that have nothing to do with its session, and put them
into a store under the cover of an import.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from foredeck.model.archive import archived_id
from foredeck.model.documents import session_object_id
from foredeck.model.file_changes import change_id
from foredeck.model.kinds import KINDS, OBJECT_TYPES, owner_of
from foredeck.model.records import call_id, member_id, nickname_id
from foredeck.model.user_objects import user_object_id
from foredeck.model.working import working_id

SOURCED = frozenset({"file", "pointer"})
"""Types whose objects are bound to something outside, by which they have their ids."""

PREFIXES = tuple(type for type in KINDS if type not in SOURCED | {"toolcall", "task"})
"""First parts of assigned ids; they belong to one type each. A tool call has its provider's id, a
task a UUID."""


@dataclass(slots=True)
class Ownership:
    """Collects what a file says about who belongs to whom; `check` judges it at the end."""

    session: str = ""
    own: set[str] = field(default_factory=set)
    foreign: dict[str, str] = field(default_factory=dict)
    """Types of the documents that are not the session's own, by id."""
    owners: dict[str, str] = field(default_factory=dict)
    """Of those that are another session's own: that session, by id."""
    _objects: set[str] = field(default_factory=set)
    _parents: set[str] = field(default_factory=set)
    _claimed: dict[str, set[str]] = field(default_factory=dict)
    _private: set[str] = field(default_factory=set)

    def take(self, type: str, fields: Mapping[str, Any]) -> None:
        """Note one version. Raises `ValueError` where its id does not fit its fields."""
        _check_id(type, fields)
        id, owner = fields["id"], owner_of(type, fields)
        if owner == self.session:
            self.own.add(id)
        else:
            self.foreign[id] = type
            if owner is not None:
                self.owners[id] = owner
        if type == "session":
            self._check_privacy(fields)
        elif type == "member":
            self._objects.add(fields["object"])
        elif type == "task" and self.session in (fields.get("created_by"), fields.get("session")):
            self._objects.add(id)
        elif type == "turn" and fields.get("task"):
            self._objects.add(fields["task"])
        elif type == "call" and fields["parent"] is not None:
            self._parents.add(fields["parent"])
        elif type == "nickname" and fields["object"] is not None:
            self._claimed.setdefault(id, set()).add(fields["object"])

    def _check_privacy(self, fields: Mapping[str, Any]) -> None:
        """A private session is private for good."""
        if fields.get("private") is True:
            self._private.add(fields["id"])
        elif fields["id"] in self._private:
            raise ValueError(f"{fields['id']!r} is private, and cannot become public")

    def check(self) -> None:
        """Raise `ValueError` for a document that does not belong to the session."""
        if session_object_id(self.session) not in self.own:
            raise ValueError("the session's own document is missing")
        both = self.own & self.foreign.keys()
        strangers = [id for id, type in self.foreign.items() if not self._belongs(id, type)]
        for id in sorted([*both, *strangers]):
            raise ValueError(f"{id!r} does not belong to session {self.session!r}")

    def _belongs(self, id: str, type: str) -> bool:
        if type == "call":
            return id in self._parents
        if type == "nickname":
            return bool(self._claimed.get(id, set()) & (self.own | self.foreign.keys()))
        # Memory of other sessions, marks and what else is no object would come in as one.
        return type in (*OBJECT_TYPES, "task") and id in self._objects


def _check_id(type: str, fields: Mapping[str, Any]) -> None:
    id, source = fields["id"], fields["source"]
    if not id.isprintable():
        raise ValueError(f"{id!r} has characters that nobody sees")
    if (source is not None) != (type in SOURCED):
        raise ValueError(f"{id!r}: a {type} {'needs a' if source is None else 'has no'} source")
    prefix = id.partition(":")[0]
    if prefix != type and (type in PREFIXES or (":" in id and prefix in PREFIXES)):
        raise ValueError(f"{id!r} is no id of a {type}")
    owner = owner_of(type, fields)
    expected = {
        "session": lambda: session_object_id(fields["session_id"]),
        "member": lambda: member_id(fields["session"], fields["ordinal"]),
        "call": lambda: call_id(fields["session"], fields["ordinal"]),
        "change": lambda: change_id(fields["session"], fields["ordinal"]),
        "nickname": lambda: nickname_id(id.removeprefix("nickname:")),
        "user": lambda: user_object_id(str(fields["text_hash"])),
        "archived": lambda: archived_id(str(fields["session"])),
        # A project's page belongs to no session: it never comes with one.
        "working": lambda: working_id("thread", str(fields["session"])),
    }.get(type)
    if expected is not None and id != expected():
        raise ValueError(f"{id!r} does not fit the fields of the {type}")
    named = type in PREFIXES and type not in ("working", "memory")
    if owner is not None and named and not f"{id}:".startswith(f"{type}:{owner}:"):
        raise ValueError(f"{id!r} does not fit the session of the {type}")
