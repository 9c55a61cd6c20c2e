"""A session file and a store that are far larger than most: what opening a session takes then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from foredeck.config import Config
from foredeck.model.documents import Provenance, SessionDocument, chat_id, session_object_id
from foredeck.store.kind import open_store
from foredeck.store.protocol import Batch
from foredeck_bench.engine_process import EngineProcess
from foredeck_bench.figures import Figure, peak_mb_of, used_seconds
from foredeck_bench.work_session import WorkSession, transcript_line

FILE_BYTES = 128_000_000
SESSIONS = 3_000

Advance = Callable[[str], None]


def large_figures(
    folder: Path, advance: Advance, size: int = FILE_BYTES, sessions: int = SESSIONS
) -> Iterator[Figure]:
    """Opening a session whose file has so many bytes, and one in a store of so many sessions: the
    processor time of the engine for it, and the most memory that it had by then."""
    folder.mkdir(parents=True)
    advance("a large session file")
    file = folder / "session.jsonl"
    _write(file, folder, size)
    yield from _opened("large_file", f"a session file of {size / 1e6:,.0f} MB", folder, file)
    file.unlink()
    advance("a store of many sessions")
    with closing(open_store(Config(home=folder / "home"))) as store:
        store.commit(Batch(puts=[_session(f"{n:08d}-none", n) for n in range(sessions)]))
    yield from _opened("many_sessions", f"a store of {sessions:,} sessions", folder, None)


def _session(id: str, number: int) -> SessionDocument:
    """A session without calls."""
    return SessionDocument(
        id=session_object_id(id),
        session_id=id,
        chat_ref=chat_id(id),
        system_prompt_ref="",
        cwd=f"/projects/{number % 40}",
        provenance=Provenance(origin="bench", generator="system"),
    ).seal()


def _write(file: Path, folder: Path, size: int) -> None:
    """A session file of that size: the same work again and again."""
    work = WorkSession(folder / "work")
    messages = [message for step in work.steps(200) for message in step.messages]
    lines = b"".join(transcript_line(message, n) for n, message in enumerate(messages, 1))
    with file.open("wb") as out:
        while out.tell() < size:
            out.write(lines)


def _opened(name: str, what: str, folder: Path, file: Path | None) -> Iterator[Figure]:
    with EngineProcess(folder / "home", folder) as engine:
        engine.initialize()
        before = used_seconds(engine.pid)
        engine.open(f"bench-{name}", file=file)
        after, peak = used_seconds(engine.pid), peak_mb_of(engine.pid)
    note = "this system does not tell"
    busy = None if before is None or after is None else round(1000 * (after - before), 1)
    memory = None if peak is None else round(peak, 1)
    text = f"{what}: a session opened, processor time"
    yield Figure(name, text, busy, "ms", 1000, "" if busy is not None else note)
    text = f"{what}: memory of its engine"
    yield Figure(f"{name}_memory", text, memory, "MB", 400, "" if memory is not None else note)
