"""Who owns a document: the session, several sessions that met it, or one that has no part here?

A file could otherwise carry documents that have nothing to do with its session, and put them
into a store under the cover of an import.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from foredeck.model.archive import archived_id
from foredeck.model.documents import chat_id, session_object_id, system_prompt_id
from foredeck.model.memory import is_kept_with
from foredeck.model.records import call_id, member_id, nickname_id
from foredeck.model.user_objects import user_object_id
from foredeck.model.working import working_id

PREFIXES = (
    *("session", "chat", "system_prompt", "turn", "member", "call", "nickname", "compaction"),
    *("user", "working", "claim", "observation", "reflection", "observing", "memory"),
    *("archived", "asked", "extraction"),
)
"""First parts of assigned ids; they belong to one type each."""


SOURCED = frozenset({"file", "pointer"})
"""Types whose objects are bound to something outside, by which they have their ids."""


def owned(session: str, type: str, fields: Mapping[str, Any]) -> bool:
    """Whether a document is the session's own, and not shared with other sessions."""
    match type:
        case "session":
            return bool(fields["id"] == session_object_id(session))
        case "chat":
            return bool(fields["id"] == chat_id(session))
        case "system_prompt":
            return bool(fields["id"] == system_prompt_id(session))
        case "toolcall":
            return bool(fields["chat_ref"] == chat_id(session))
        case "turn" | "member" | "call" | "compaction" | "working" | "claim" | "archived":
            return bool(fields["session"] == session)
        case "observation" | "reflection" | "observing" | "asked" | "extraction":
            return bool(fields["session"] == session)
        case "memory":
            return bool(fields["session"] == session) and is_kept_with(fields)
    return False


@dataclass(slots=True)
class Ownership:
    """Collects what a file says about who belongs to whom; `check` judges it at the end."""

    session: str = ""
    own: set[str] = field(default_factory=set)
    foreign: dict[str, str] = field(default_factory=dict)
    """Types of the documents that are not the session's own, by id."""
    _objects: set[str] = field(default_factory=set)
    _parents: set[str] = field(default_factory=set)
    _claimed: dict[str, set[str]] = field(default_factory=dict)

    def take(self, type: str, fields: Mapping[str, Any]) -> None:
        """Note one version. Raises `ValueError` where its id does not fit its fields."""
        _check_id(type, fields)
        id = fields["id"]
        if owned(self.session, type, fields):
            self.own.add(id)
        else:
            self.foreign[id] = type
        if type == "member":
            self._objects.add(fields["object"])
        elif type == "task" and self.session in (fields.get("created_by"), fields.get("session")):
            self._objects.add(id)
        elif type == "turn" and fields.get("task"):
            self._objects.add(fields["task"])
        elif type == "call" and fields["parent"] is not None:
            self._parents.add(fields["parent"])
        elif type == "nickname" and fields["object"] is not None:
            self._claimed.setdefault(id, set()).add(fields["object"])

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
        return type not in ("turn", "member") and id in self._objects


def _check_id(type: str, fields: Mapping[str, Any]) -> None:
    id, source = fields["id"], fields["source"]
    if (source is not None) != (type in SOURCED):
        raise ValueError(f"{id!r}: a {type} {'needs a' if source is None else 'has no'} source")
    prefix = id.partition(":")[0]
    if ":" in id and prefix in PREFIXES and prefix != type:
        raise ValueError(f"{id!r} is no id of a {type}")
    expected = {
        "session": lambda: session_object_id(fields["session_id"]),
        "member": lambda: member_id(fields["session"], fields["ordinal"]),
        "call": lambda: call_id(fields["session"], fields["ordinal"]),
        "nickname": lambda: nickname_id(id.removeprefix("nickname:")),
        "user": lambda: user_object_id(str(fields["text_hash"])),
        "archived": lambda: archived_id(str(fields["session"])),
        # A project's page belongs to no session: it never comes with one.
        "working": lambda: working_id("thread", str(fields["session"])),
    }.get(type)
    if expected is not None and id != expected():
        raise ValueError(f"{id!r} does not fit the fields of the {type}")
