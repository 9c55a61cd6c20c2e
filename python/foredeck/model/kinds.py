"""Classes of document types, and their owners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foredeck.model.calls import CallDocument
from foredeck.model.documents import (
    ChatDocument,
    Document,
    FileDocument,
    PointerDocument,
    SessionDocument,
    SystemPromptDocument,
    ToolcallDocument,
    UserDocument,
)
from foredeck.model.memory import MemoryDocument, WorkingDocument, is_kept_with
from foredeck.model.observations import (
    CompactionDocument,
    ObservationDocument,
    ObservingDocument,
    ReflectionDocument,
)
from foredeck.model.records import (
    ArchivedDocument,
    AskedDocument,
    CalibrationDocument,
    ExtractionDocument,
    FileChangeDocument,
    ForgottenDocument,
    ImportedDocument,
    MemberDocument,
    NicknameDocument,
    ReasoningDocument,
    TurnDocument,
)
from foredeck.model.tasks import ClaimDocument, TaskDocument

KINDS: dict[str, type[Document]] = {
    "session": SessionDocument,
    "chat": ChatDocument,
    "system_prompt": SystemPromptDocument,
    "file": FileDocument,
    "toolcall": ToolcallDocument,
    "user": UserDocument,
    "pointer": PointerDocument,
    "compaction": CompactionDocument,
    "observation": ObservationDocument,
    "reflection": ReflectionDocument,
    "working": WorkingDocument,
    "memory": MemoryDocument,
    "task": TaskDocument,
    "nickname": NicknameDocument,
    "claim": ClaimDocument,
    "observing": ObservingDocument,
    "turn": TurnDocument,
    "member": MemberDocument,
    "call": CallDocument,
    "change": FileChangeDocument,
    "asked": AskedDocument,
    "archived": ArchivedDocument,
    "extraction": ExtractionDocument,
    "imported": ImportedDocument,
    "forgotten": ForgottenDocument,
    "calibration": CalibrationDocument,
    "reasoning": ReasoningDocument,
}
"""Class by `type`, in the order in which a transaction's documents are written: referenced versions
first."""

_RANK = {type: place for place, type in enumerate(KINDS)}

OBJECT_TYPES = (
    *("file", "toolcall", "user", "pointer", "chat", "compaction", "system_prompt", "session"),
    *("observation", "reflection"),
)
"""Types that the model can refer to; others are records."""

OWNED = {
    "session": "session_id",
    "chat": "session_ref",
    "system_prompt": "session_ref",
    "toolcall": "chat_ref",
    **dict.fromkeys(
        (
            *("compaction", "observation", "reflection", "working", "memory", "claim"),
            *("observing", "turn", "member", "call", "change", "asked", "archived"),
            "extraction",
        ),
        "session",
    ),
}
"""Types owned by a session, and the field that names it."""

SHARED = frozenset({"file", "user", "pointer", "task", "nickname"})

PROJECTS = ("task", "working", "memory")
"""Types that a project owns."""

KEPT_HERE = frozenset({"imported", "forgotten", "calibration", "reasoning"})
"""Types about this store, never exported."""


def kind_of(type: str) -> type[Document]:
    """The class of a type, `Document` for an unknown one."""
    return KINDS.get(type, Document)


def rank_of(type: str) -> int:
    return _RANK.get(type, len(_RANK))


def owner_of(type: str, fields: Mapping[str, Any]) -> str | None:
    """The session that owns a document, if one does."""
    if type in ("chat", "system_prompt"):  # older ones name their session in other ways
        return str(fields["id"]).removeprefix(f"{type}:")
    if type == "memory" and not is_kept_with(fields):
        return None
    owner = fields.get(OWNED.get(type, ""))
    if not isinstance(owner, str) or not owner:
        return None
    return owner.removeprefix("chat:") if type == "toolcall" else owner


def project_of_document(type: str, fields: Mapping[str, Any]) -> str | None:
    """The project that owns a document, if one does."""
    holds = {"working": fields.get("scope") == "resource", "task": True}
    holds["memory"] = not is_kept_with(fields) and fields.get("scope") == "project"
    project = fields.get("project")
    return project if isinstance(project, str) and holds.get(type, False) else None
