"""Which fields of which documents hold references: the one place that a new type is added to.

Markdown files are not in here: their references are parsed out of their text and frontmatter. Nor
are the links in the messages of a chat, which are in documents of their own (`chat.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from foredeck.model.documents import session_object_id
from foredeck.notes.parsed import MENTIONS

READS = "reads"
TOUCHES = "touches"
WITHIN = "within"
RELATED = "related"
PARENT = "parent"
DERIVED_FROM = "derived-from"
FOLLOWS = "follows"
PASTED = "pasted"

Holds = Literal["ids", "sessions", "version", "typed", "markdown"]
"""What is in a field: an object's id or a list of ids, ids of sessions, a `VersionRef` with the
version that was recorded, a list of mappings that say their relation themselves, or text in which
people and models write links."""


@dataclass(frozen=True, slots=True)
class ReferenceField:
    """A field with references, and the relation that they have to the object they are in."""

    name: str
    relation: str
    """Where the reference does not say it itself."""
    holds: Holds = "ids"
    key: str = "object"
    """In mappings: where the id is, beside `relation`."""

    def target(self, value: str) -> str:
        """The id of the object that a value means."""
        return session_object_id(value) if self.holds == "sessions" else value


_DERIVED = ReferenceField("provenance.parent_refs", DERIVED_FROM)

REFERENCE_FIELDS: Mapping[str, tuple[ReferenceField, ...]] = {
    "toolcall": (
        ReferenceField("file_pin", READS, "version"),
        ReferenceField("file_refs", TOUCHES),
        ReferenceField("parent_ref", PARENT),
        ReferenceField("chat_ref", WITHIN),
        _DERIVED,
    ),
    "chat": (ReferenceField("session_ref", WITHIN),),
    "system_prompt": (ReferenceField("session_ref", WITHIN),),
    "compaction": (
        ReferenceField("previous", FOLLOWS),
        ReferenceField("session", WITHIN, "sessions"),
    ),
    "observation": (
        ReferenceField("previous", FOLLOWS),
        ReferenceField("session", WITHIN, "sessions"),
        _DERIVED,
    ),
    "reflection": (
        ReferenceField("previous", FOLLOWS),
        ReferenceField("session", WITHIN, "sessions"),
        _DERIVED,
    ),
    "task": (
        ReferenceField("content", MENTIONS, "markdown"),
        ReferenceField("summary", MENTIONS, "markdown"),
        ReferenceField("dependencies", RELATED, "typed", key="on"),
        ReferenceField("links", RELATED, "typed"),
        ReferenceField("session", WITHIN, "sessions"),
        _DERIVED,
    ),
    "session": (
        ReferenceField("parent_session", DERIVED_FROM, "sessions"),
        ReferenceField("started_by", PARENT, "sessions"),
    ),
}
"""By type. Files are not in here: what they derive from is the name they had, which is followed
wherever it is asked for (`resolving.py`)."""

CONTAINED = ("toolcall_ids", "turns")
"""Fields of a chat that no document has: the calls and turns that name it."""


def reads_content(type: str) -> bool:
    """Whether the content of documents of a type is searched for links."""
    return any(field.name == "content" for field in REFERENCE_FIELDS.get(type, ()))


def is_reference_field(type: str, name: str) -> bool:
    """Whether a field of documents of a type holds references and nothing else."""
    if type == "chat" and name.partition("[")[0] in CONTAINED:
        return True
    fields = REFERENCE_FIELDS.get(type, ())
    return any(field.name == name and field.holds != "markdown" for field in fields)
