"""The session that is carried: its whole chat, whoever has recorded it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from foredeck.context.messages.shape import Message
from foredeck.context.state.call_log import CallLog
from foredeck.errors import NotFound
from foredeck.lookup.sessions import newest_call, title
from foredeck.model.calls import CallRecord
from foredeck.model.documents import Fields, progress_in, session_object_id
from foredeck.model.messages import load_messages, text_in
from foredeck.model.records import call_id
from foredeck.names import find_session
from foredeck.store.store import Store
from foredeck_agents.carry.messages import call_ids, whole_text
from foredeck_agents.carry.opencode import opencode_session
from foredeck_agents.histories.ingesting import ingest_files
from foredeck_agents.histories.recordings import (
    format_of,
    history_files,
    load_recordings,
    usual_places,
)
from foredeck_agents.histories.records import RecordedMessage, Transcript, TranscriptError

CALLS = 3
"""Calls with which a carried session begins: what was sent without foredeck, as it was, and as it
goes on."""
NOTE = "carried"
"""The entry of our message about the carrying."""
Entries = list[RecordedMessage]


@dataclass(frozen=True, slots=True)
class SourceSession:
    """A session to carry. `parent`: itself, if stored; `model`: of its newest answer."""

    session: str
    harness: str
    cwd: str
    messages: Entries
    parent: str | None
    model: str = ""


def find_origin(store: Store, name: str, *, ingests: bool) -> SourceSession:
    """The session of that name, or of a file, which is taken into the store if it `ingests`.

    Raises `NotFound` or `TranscriptError`.
    """
    path = Path(name)
    try:
        return stored_origin(store, find_session(store, name))
    except NotFound:
        if (own := opencode_origin(name)) is not None:
            return own
        if not path.is_file():
            raise
    origin = file_origin(path)
    if ingests:
        ingest_files(store, [path])
    is_stored = store.head(session_object_id(origin.session)) is not None
    return stored_origin(store, origin.session) if is_stored else origin


def title_of(store: Store, origin: SourceSession) -> str:
    """What the new session is called."""
    head = store.head(session_object_id(origin.session))
    name = "" if head is None else title(store, head)
    return whole_text(name) or f"Carried from {origin.session[:8]}"


def stored_origin(store: Store, session: str) -> SourceSession:
    """A stored session. Raises `NotFound` if nothing of it can be read."""
    head = store.head(session_object_id(session))
    fields: Fields = {} if head is None else head.fields
    harness = str(fields.get("harness") or "pi")
    newest = newest_call(store, session)
    if newest is None:
        path = _read_from(fields)
        if path is None:
            raise NotFound(
                f"session {session} has made no call yet, and no file of it is there to be read."
            )
        origin = file_origin(path, session)
        return SourceSession(session, harness, origin.cwd, origin.messages, session, origin.model)
    messages = messages_of(store, newest)
    record = _begun_with(store, session)
    if record is not None:
        # What it was begun with is there as it was said first, not as its agent was given it.
        before = messages_of(store, record)[:-1]
        is_seen = newest.ordinal > record.ordinal
        own = messages if is_seen else _native(fields, session)
        messages = [*before, *_after(own, before, session)]
        messages += _since(messages, fields, session) if is_seen else []
    else:
        messages += _since(messages, fields, session)
    cwd, model = str(fields.get("cwd") or ""), newest.model.name
    return SourceSession(session, harness, cwd, messages, session, model)


def file_origin(path: Path, session: str | None = None) -> SourceSession:
    """A session of a file, by default its first. Raises `TranscriptError`."""
    transcript = _transcript(path, session)
    if transcript is None:
        raise TranscriptError(f"{path} holds no session {session or ''}".rstrip() + ".")
    messages = _whole(transcript)
    answers = [r.message for r in messages if r.message.get("role") == "assistant"]
    newest = answers[-1] if answers else {}
    if not answers:
        raise NotFound(f"{path} has no answer of a model in it: there is nothing to carry.")
    model = f"{newest.get('provider') or ''}/{newest.get('model') or ''}"
    format = format_of(path)
    harness = "" if format is None else format.harness
    return SourceSession(transcript.id, harness, transcript.cwd, messages, None, model)


def opencode_origin(session: str) -> SourceSession | None:
    """A session that opencode alone has."""
    stored = opencode_session(session)
    if stored is None or not any(m.message["role"] == "assistant" for m in stored.messages):
        return None
    return SourceSession(session, "opencode", stored.folder, stored.messages, None, stored.model)


def _transcript(path: Path, session: str | None) -> Transcript | None:
    transcripts = load_recordings(path)
    return next((t for t in transcripts if session in (None, t.id)), None)


def _whole(transcript: Transcript) -> Entries:
    messages = transcript.edited(len(transcript.messages))
    return [recorded for recorded in messages if recorded is not None]


def _read_from(fields: Fields) -> Path | None:
    progress = progress_in(fields)
    file = fields.get("host_file") if progress is None else progress.file
    path = None if file is None else Path(str(file))
    return path if path is not None and path.is_file() else None


def messages_of(store: Store, record: CallRecord) -> Entries:
    """The messages that the host had at a call."""

    def load(id: str) -> CallRecord:
        head = store.head(id)
        assert head is not None  # `sent` asks for the parents of what is stored
        return CallRecord(head.fields)

    keys = CallLog().sent(record.id, load).keys
    messages = load_messages({key.address for key in keys}, store.blobs)
    return [
        RecordedMessage(messages[key.address], key.entry) for key in keys if key.address in messages
    ]


def _begun_with(store: Store, session: str) -> CallRecord | None:
    for number in range(1, CALLS + 1):
        head = store.head(call_id(session, number))
        record = None if head is None else CallRecord(head.fields)
        if record is not None and any(key.entry == NOTE for key in record.keys):
            return record
    return None


def _after(messages: Entries, before: Entries, session: str) -> Entries:
    ids = [str(each.message.get("toolCallId") or "") for each in messages]
    at = max((n for n, id in enumerate(ids, 1) if id.startswith(call_ids(session))), default=0)
    roles = [each.message.get("role") for each in before]
    if not at and "toolResult" in roles:
        return messages  # the agent has compacted: its summary stands for what it was given
    # What was said after the last call has no id: as many answers.
    results = max((n for n, role in enumerate(roles, 1) if role == "toolResult"), default=0)
    answers = roles[results:].count("assistant")
    while answers and at < len(messages):
        answers -= messages[at].message.get("role") == "assistant"
        at += 1
    return messages[at:]


def _since(messages: Entries, fields: Fields, session: str) -> Entries:
    """What the agent has kept of the time after foredeck's newest call."""
    recorded = _native(fields, session) if messages else []
    if not recorded:
        return []
    last = messages[-1].message
    at = next((n for n in range(len(recorded), 0, -1) if _same(recorded[n - 1], last)), None)
    return [] if at is None else recorded[at:]


def _native(fields: Fields, session: str) -> Entries:
    if fields.get("harness") == "opencode":
        own = opencode_session(session)
        return [] if own is None else own.messages
    path = _read_from(fields) or _usual_file(session)
    try:
        transcript = None if path is None else _transcript(path, session)
    except TranscriptError:
        return []
    return [] if transcript is None else _whole(transcript)


def _same(recorded: RecordedMessage, message: Message) -> bool:
    """Whether an agent's record of a message is that of the message sent."""
    kept = recorded.message
    if message.get("role") == "toolResult":
        return kept.get("toolCallId") == message.get("toolCallId")
    text = text_in(kept.get("content"))
    return kept.get("role") != "assistant" and bool(text) and text in text_in(message["content"])


def _usual_file(session: str) -> Path | None:
    """An agent's file of a session, by the id at its end."""
    folders: Sequence[Path] = [folder for _, folder in usual_places()]
    files = (f for folder in folders if folder.is_dir() for f in history_files([folder]))
    return next((f for f in files if f.name.removesuffix(".jsonl").endswith(session)), None)
