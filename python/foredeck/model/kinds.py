"""The class of each document type, and whose its documents are."""

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
"""Class by the `type` field. A type that is not in here is kept as a plain `Document`.

The order is that in which the documents of one transaction are written: what others refer to by
its version comes first."""

_RANK = {type: place for place, type in enumerate(KINDS)}

OBJECT_TYPES = (
    *("file", "toolcall", "user", "pointer", "chat", "compaction", "system_prompt", "session"),
    *("observation", "reflection"),
)
"""The types of what the model can refer to; all others are records."""

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
"""The types of which a session has documents of its own, and the field that names the session."""

SHARED = frozenset({"file", "user", "pointer", "task", "nickname"})
"""The types whose documents belong to every session that has met them."""

KEPT_HERE = frozenset({"imported", "forgotten", "calibration", "reasoning"})
"""The types that say something of this store, and are in no export."""


def kind_of(type: str) -> type[Document]:
    """The class of a type, `Document` for an unknown one."""
    return KINDS.get(type, Document)


def rank_of(type: str) -> int:
    """The place of a type in the order of `KINDS`; unknown ones are last."""
    return _RANK.get(type, len(_RANK))


def owner_of(type: str, fields: Mapping[str, Any]) -> str | None:
    """The session whose own a document is; None for one that is shared, or belongs to a project or
    a user. `fields`: as in a `Head`."""
    if type in ("chat", "system_prompt"):  # older ones name their session in other ways
        return str(fields["id"]).removeprefix(f"{type}:")
    if type == "memory" and not is_kept_with(fields):
        return None
    owner = fields.get(OWNED.get(type, ""))
    if not isinstance(owner, str) or not owner:
        return None
    return owner.removeprefix("chat:") if type == "toolcall" else owner
