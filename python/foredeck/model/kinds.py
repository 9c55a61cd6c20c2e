"""Which class a document's type stands for."""

from __future__ import annotations

from foredeck.model.archive import ArchivedDocument
from foredeck.model.asked import AskedDocument
from foredeck.model.calls import CallDocument
from foredeck.model.compactions import CompactionDocument
from foredeck.model.documents import (
    ChatDocument,
    Document,
    FileDocument,
    SessionDocument,
    SystemPromptDocument,
    ToolcallDocument,
)
from foredeck.model.extractions import ExtractionDocument
from foredeck.model.file_changes import FileChangeDocument
from foredeck.model.memory import MemoryDocument
from foredeck.model.observations import (
    ObservationDocument,
    ObservingDocument,
    ReflectionDocument,
)
from foredeck.model.pointers import PointerDocument
from foredeck.model.records import (
    ForgottenDocument,
    MemberDocument,
    NicknameDocument,
    TurnDocument,
)
from foredeck.model.tasks import ClaimDocument, TaskDocument
from foredeck.model.user_objects import UserDocument
from foredeck.model.working import WorkingDocument

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
    "turn": TurnDocument,
    "member": MemberDocument,
    "nickname": NicknameDocument,
    "call": CallDocument,
    "change": FileChangeDocument,
    "forgotten": ForgottenDocument,
    "archived": ArchivedDocument,
    "task": TaskDocument,
    "claim": ClaimDocument,
    "working": WorkingDocument,
    "observing": ObservingDocument,
    "extraction": ExtractionDocument,
    "asked": AskedDocument,
    "memory": MemoryDocument,
}
"""Class by the `type` field. A type that is not in here is kept as a plain `Document`."""

OBJECT_TYPES = (
    *("file", "toolcall", "user", "pointer", "chat", "compaction", "system_prompt", "session"),
    *("observation", "reflection"),
)
"""The types of what the model can refer to; all others are records."""


def kind_of(type: str) -> type[Document]:
    """The class of a type, `Document` for an unknown one."""
    return KINDS.get(type, Document)
