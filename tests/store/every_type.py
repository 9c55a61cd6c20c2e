"""A session with a document of every type that exists."""

from __future__ import annotations

from foredeck.model.documents import Document, UserDocument
from foredeck.model.identity import sha256_hex
from foredeck.model.memory import MemoryDocument, WorkingDocument, working_id
from foredeck.model.messages import put_blob
from foredeck.model.observations import (
    CompactionDocument,
    ObservationDocument,
    ObservingDocument,
    ReflectionDocument,
    Remark,
    compaction_id,
    observation_id,
    observing_id,
    reflection_id,
)
from foredeck.model.records import (
    ArchivedDocument,
    AskedDocument,
    CalibrationDocument,
    ExtractionDocument,
    FileChangeDocument,
    ForgottenDocument,
    PathChange,
    PathState,
    ReasoningDocument,
    TurnDocument,
    archived_id,
    asked_id,
    calibration_id,
    call_id,
    change_id,
    extraction_id,
    forgotten_id,
    reasoning_id,
    turn_id,
)
from foredeck.model.tasks import ClaimDocument, TaskDocument, claim_id
from foredeck.sources.git import pointer
from foredeck.store.protocol import Batch
from foredeck.store.store import Store

from .documents import PROVENANCE
from .sessions import LONG, SampleSession, write_sample

TASK = "task:build"
"""It belongs to no session."""


def write_every_type(store: Store, id: str = SampleSession.id) -> SampleSession:
    """The sample, and one more document of each type that it lacks."""
    session, blobs = write_sample(store, id), dict[str, bytes]()
    objects = [_compaction(id), *_observed(id), UserDocument.of(LONG), pointer("https://a.example")]
    records = [*_about_the_chat(id, blobs), *_of_the_store(id), *_tasks(id)]
    members = [session.member(document) for document in objects]
    store.commit(Batch([*objects, *records, *members], blobs))
    return session


def change_of(session: str, ordinal: int, *paths: PathChange) -> FileChangeDocument:
    """What a tool call of the session's first answer has done to files."""
    return FileChangeDocument(
        id=change_id(session, ordinal),
        session=session,
        ordinal=ordinal,
        tool="write",
        tool_call=f"toolu_{session}_1",
        call=call_id(session, 1),
        paths=list(paths),
    ).seal()


def kept(data: bytes, blobs: dict[str, bytes], mode: int = 0o644) -> PathState:
    """The state of a file whose bytes are kept."""
    digest = put_blob(data, blobs)
    return PathState(kind="file", digest=digest, mode=mode, size=len(data))


def _compaction(id: str) -> CompactionDocument:
    return CompactionDocument(
        id=compaction_id(id, ["a1"], None, "foredeck"),
        session=id,
        first_turn=1,
        last_turn=2,
        content=f"summary\n{LONG}",
        turns=[[1, "what was said"]],
        asked_by="user",
        provenance=PROVENANCE,
    ).seal()


def _observed(id: str) -> list[Document]:
    remark = Remark(time_ms=1, priority="high", category="fact", content="It builds.")
    noted = ObservationDocument(
        id=observation_id(id, ["a1"], None, None),
        session=id,
        covers=["a1"],
        content="- It builds.",
        remarks=[remark],
        provenance=PROVENANCE,
    ).seal()
    reflected = ReflectionDocument(
        id=reflection_id(id, [noted.id]),
        session=id,
        replaces=[noted.id],
        observations=[noted.id],
        content="It builds.",
        provenance=PROVENANCE,
    ).seal()
    return [noted, reflected]


def _about_the_chat(id: str, blobs: dict[str, bytes]) -> list[Document]:
    before, after = kept(b"before\xff\n" * 80, blobs), kept(b"after\n" * 200, blobs)
    mark = {"$json": put_blob(b'{"role":"user","content":"(archived)"}', blobs)}
    return [
        change_of(id, 1, PathChange(path="/repo/a.py", before=before, after=after)),
        ObservingDocument(id=observing_id(id), session=id, provenance=PROVENANCE).seal(),
        AskedDocument(id=asked_id(id), session=id, purpose="observe", time_ms=1).seal(),
        ExtractionDocument(id=extraction_id(id, 1), session=id, first=1, last=1, time_ms=1).seal(),
        ArchivedDocument(
            id=archived_id(id),
            session=id,
            messages={sha256_hex(b"pruned"): mark},
            texts=[sha256_hex(b"a text of it")],
        ).seal(),
        TurnDocument(id=turn_id(id, 9), session=id, answers=call_id(id, 1), task=TASK).seal(),
        WorkingDocument(
            id=working_id("thread", id), scope="thread", session=id, content="# Page"
        ).seal(),
        MemoryDocument(
            id=f"memory:{id}",
            place="session",
            category="fact",
            fact="It builds.",
            owner="somebody",
            session=id,
            turn=turn_id(id, 9),
            **dict.fromkeys(("learned_ms", "created_ms", "updated_ms", "used_ms"), 1),
        ).seal(),
    ]


def _tasks(id: str) -> list[Document]:
    return [
        TaskDocument(
            id=TASK,
            project="p",
            title="Build it",
            created_by=id,
            created_ms=1,
            updated_ms=1,
            provenance=PROVENANCE,
        ).seal(),
        ClaimDocument(id=claim_id(id), session=id, task=TASK, provenance=PROVENANCE).seal(),
    ]


def _of_the_store(id: str) -> list[Document]:
    return [
        ForgottenDocument(
            id=forgotten_id(f"before {id}"), session="gone", documents=1, blobs=1
        ).seal(),
        CalibrationDocument(
            id=calibration_id("m"), model="m", chars_per_token=4.0, points=[]
        ).seal(),
        ReasoningDocument(id=reasoning_id("m"), model="m", binds=True).seal(),
    ]
