"""What a stored session of an earlier version is, and how one is made.

Each folder of `fixtures/` was written by the version that it is named after or, before the first
release, while foredeck did not store more yet than FORMS says of it:

- `store.db.xz`: its store after a good half of the calls of each session,
- `ID.jsonl.xz`: a session as Pi recorded it, where that is not the one of 0.1.0,
- `small-window.bundle.xz`: one of the sessions as that version exported it,
- `user.key`: the key of its user, where memory was stored,
- `sessions.json`: by id, the options of its replay, how many calls the store has, and a hash of
  every prompt, those after the restart too.

`cd tests && python -m resume.recorded` makes a folder for the version that is checked out. Do so
before a release, and never change a folder that is there: people have such stores.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foredeck import __version__
from foredeck.context.messages.shape import Message
from foredeck.histories.pi import load_transcript
from foredeck.histories.records import Transcript
from foredeck.replay.options import ReplayOptions
from foredeck.replay.replayed_session import ReplayedSession
from foredeck.store.kind import open_store
from foredeck.store.portable.export import export_session
from resume.work import works

FIXTURES = Path(__file__).with_name("fixtures")
FORMS = {
    "first": "objects with versions, prompts by call",
    "summaries": "chat that left under a summary, subagents, forgotten sessions",
    "extensions": "what other extensions did to the chat",
    "0.1.0": "sources of every kind, all that Pi gives with a message, the layout pools",
    "tasks": "tasks, notes, nicknames, a project's page, the head",
    "memory": "memory with its user's word, prompts with stand-ins",
    "observations": "observations of the chat, tool calls that made a version",
}
"""Stored forms in the order in which they came about, and what each was the first to have."""
SENT = ("role", "content", "toolCallId", "toolName", "isError", "command", "output", "summary")
"""The fields of Pi's messages that providers are sent something of."""


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session whose beginning an earlier version has stored."""

    id: str
    options: ReplayOptions
    calls: int
    """How many calls the store has."""
    prompts: list[str]
    """Hashes of all prompts, those that follow the stored ones too."""

    def transcript(self, folder: Path, scratch: Path) -> Transcript:
        """The session as it was recorded; `scratch` takes the unpacked file."""
        file = scratch / f"{self.id}.jsonl"
        packed = folder / f"{file.name}.xz"
        if not packed.exists():
            packed = FIXTURES / "0.1.0" / packed.name
        file.write_bytes(lzma.decompress(packed.read_bytes()))
        return load_transcript(file)


def stored_sessions(folder: Path) -> Iterator[StoredSession]:
    """The sessions of one fixture."""
    for id, told in json.loads((folder / "sessions.json").read_text()).items():
        yield StoredSession(id, ReplayOptions(**told["options"]), told["calls"], told["prompts"])


def unpack_store(folder: Path, home: Path) -> None:
    """A state folder with the stored sessions, which may be changed."""
    home.mkdir(mode=0o700)
    file = home / "foredeck.db"
    file.write_bytes(lzma.decompress((folder / "store.db.xz").read_bytes()))
    file.chmod(0o600)
    if (folder / "user.key").exists():
        (home / "user.key").write_bytes((folder / "user.key").read_bytes())
        (home / "user.key").chmod(0o600)


def digest(prompt: list[Message]) -> str:
    """A hash over what a provider is sent of a prompt."""
    sent = [{name: message.get(name) for name in SENT} for message in prompt]
    text = json.dumps(sent, sort_keys=True).encode()
    return hashlib.sha256(text).hexdigest()[:16]


def make(folder: Path) -> None:
    """Write a fixture with the code of this checkout."""
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch) / "home"
        home.mkdir(mode=0o700)
        described: dict[str, dict[str, Any]] = {}
        for recording, options in works():
            file = recording.write(Path(scratch) / f"{recording.id}.jsonl")
            pack(file.read_bytes(), folder / f"{file.name}.xz")
            transcript = load_transcript(file)
            calls = len(transcript.calls) // 2 + 3
            stored = [*_prompts(home, transcript, options, 0, calls)]
            described[recording.id] = {"options": options, "calls": calls, "prompts": stored}
        with closing(sqlite3.connect(home / "foredeck.db")) as db:
            db.execute("VACUUM INTO ?", [str(Path(scratch) / "store.db")])
        pack((Path(scratch) / "store.db").read_bytes(), folder / "store.db.xz")
        pack(_exported(home, "small-window"), folder / "small-window.bundle.xz")
        for recording, options in works():
            transcript = load_transcript(Path(scratch) / f"{recording.id}.jsonl")
            told = described[recording.id]
            told["prompts"] += _prompts(home, transcript, options, told["calls"], None)
    (folder / "sessions.json").write_text(json.dumps(described, indent=1) + "\n")


def _exported(home: Path, session: str) -> bytes:
    lines: list[str] = []
    with closing(open_store(ReplayOptions().config(home))) as store:
        export_session(store, session, lines.append)
    return "".join(lines).encode()


def _prompts(
    home: Path, transcript: Transcript, options: Mapping[str, Any], first: int, end: int | None
) -> Iterator[str]:
    """Hashes of the prompts of some calls, by an engine that begins with them."""
    session = ReplayedSession(home, transcript, ReplayOptions(**options))
    for call in transcript.calls[first:end]:
        yield digest(session.call(call)[0])
    session.close()


def pack(data: bytes, file: Path) -> None:
    """Compress into a file."""
    file.write_bytes(lzma.compress(data))


if __name__ == "__main__":
    make(FIXTURES / __version__)
