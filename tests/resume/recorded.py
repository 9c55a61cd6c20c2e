"""The stored form of 0.1.0, and how the fixture of it is made.

`fixture/` holds

- `store.db.xz`: a store after a good half of the calls of each session, with one document of each
  type,
- `ID.jsonl.xz`: each session as Pi recorded it,
- `small-window.bundle.xz`: one of the sessions as it was exported,
- `sessions.json`: by id, the options of its replay, how many calls the store has, and a hash of
  every prompt, those after the restart too.

`cd tests && python -m resume.recorded` makes it anew. From the release on it stays as it is:
people have such stores, and a later form gets a folder of its own.
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

from foredeck.context.messages.shape import Message
from foredeck.store.place import open_store
from foredeck.store.portable.export import export_session
from foredeck_agents.histories.pi import load_transcript
from foredeck_agents.histories.records import Transcript
from foredeck_lab.replay.options import ReplayOptions
from foredeck_lab.replay.replayed_session import ReplayedSession
from resume.work import works
from store.every_type import write_every_type

FIXTURE = Path(__file__).with_name("fixture")
SENT = ("role", "content", "toolCallId", "toolName", "isError", "command", "output", "summary")
"""The fields of Pi's messages that providers are sent something of."""


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session whose beginning is stored."""

    id: str
    options: ReplayOptions
    calls: int
    """How many calls the store has."""
    prompts: list[str]
    """Hashes of all prompts, those that follow the stored ones too."""

    def transcript(self, scratch: Path) -> Transcript:
        """The session as it was recorded; `scratch` takes the unpacked file."""
        file = scratch / f"{self.id}.jsonl"
        file.write_bytes(unpacked(f"{file.name}.xz"))
        return load_transcript(file)


def stored_sessions() -> Iterator[StoredSession]:
    """The sessions of the fixture."""
    for id, told in json.loads((FIXTURE / "sessions.json").read_text()).items():
        yield StoredSession(id, ReplayOptions(**told["options"]), told["calls"], told["prompts"])


def unpack_store(home: Path) -> None:
    """A state folder with the stored sessions, which may be changed."""
    home.mkdir(mode=0o700)
    file = home / "foredeck.db"
    file.write_bytes(unpacked("store.db.xz"))
    file.chmod(0o600)


def unpacked(name: str) -> bytes:
    """A file of the fixture."""
    return lzma.decompress((FIXTURE / name).read_bytes())


def digest(prompt: list[Message]) -> str:
    """A hash over what a provider is sent of a prompt."""
    sent = [{name: message.get(name) for name in SENT} for message in prompt]
    return hashlib.sha256(json.dumps(sent, sort_keys=True).encode()).hexdigest()[:16]


def make(folder: Path) -> None:
    """Write the fixture with the code of this checkout."""
    folder.mkdir(exist_ok=True)
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
        with closing(open_store(ReplayOptions().config(home))) as store:
            write_every_type(store)
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
    make(FIXTURE)
