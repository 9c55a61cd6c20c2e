"""Driving the engine with recorded sessions, call by call (design 2 section 6).

No model runs: what is measured is what a model would have been shown, not what it would have
done with it.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from foredeck.bench.transcripts import Message, RecordedCall, Transcript, load_transcript
from foredeck.config import Config
from foredeck.context.items import blocks_chars
from foredeck.engine import Engine
from foredeck.errors import ForedeckError
from foredeck.hosts.pi.edits import apply_edits
from foredeck.hosts.pi.validity import find_faults
from foredeck.sources import FileSource, FilesystemMap, RecordedSource
from foredeck.store.protocol import Store

REPLAY_FILESYSTEM = "replay"


@dataclass(frozen=True, slots=True)
class Options:
    """How to replay."""

    layout: str = "anchored"
    policy: str = "seed-window"
    restart_every: int | None = None
    prompts: Path | None = None
    window: int | None = 200_000
    """Context window of the recorded models, in tokens."""


@dataclass(slots=True)
class SessionResult:
    """What came of one recorded session. Characters are summed over all calls."""

    file: str
    calls: int = 0
    tool_calls: int = 0
    invalid_prompts: int = 0
    error: str | None = None
    chars_plain: int = 0
    chars_foredeck: int = 0
    rebases: int = 0
    collapsed: int = 0
    peak_plain: int = 0
    peak_foredeck: int = 0


class Host:
    """Stands in for Pi and the shim: holds the list, applies answers, restarts the engine."""

    def __init__(self, home: Path, transcript: Transcript, options: Options) -> None:
        self._home = home
        self._transcript = transcript
        self._options = options
        self._engine: Engine | None = None
        self._applied: int | None = None
        self._held = 0
        self._edits: dict[int, list[Any]] = {}
        self._inserts: dict[int, list[Message]] = {}
        self._drops: set[int] = set()

    def call(self, call: RecordedCall) -> tuple[list[Message], dict[str, Any]]:
        """One recorded call: the messages that would have gone out, and the engine's answer."""
        engine = self._engine or self._start()
        recorded = self._transcript.messages
        answer = engine.assemble(
            {
                "session": self._transcript.id,
                "keep": self._held,
                "messages": [r.message for r in recorded[self._held : call.seen]],
                "entries": [r.entry for r in recorded[self._held : call.seen]],
                "model": {
                    "provider": call.provider,
                    "id": call.model,
                    "api": call.api,
                    "contextWindow": self._options.window,
                },
                "time_ms": call.time_ms,
                "outcomes": self._outcomes(),
            }
        )
        self._merge(answer)
        self._held, self._applied = call.seen, answer["call"]
        messages = [r.message for r in recorded[: call.seen]]
        return apply_edits(messages, self._edits, self._inserts, self._drops), answer

    def restart(self) -> None:
        """Close the engine; the next call starts another on the same store."""
        self.close()
        self._held = 0

    def close(self) -> None:
        """Close the engine, if one runs."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def _outcomes(self) -> list[dict[str, Any]]:
        return [] if self._applied is None else [{"call": self._applied, "kind": "applied"}]

    def _start(self) -> Engine:
        config = Config(home=self._home, layout=self._options.layout, policy=self._options.policy)
        self._engine = Engine(config, source=recorded_source)
        self._engine.open_session(
            {"session": self._transcript.id, "cwd": self._transcript.cwd, "reason": "startup"}
        )
        return self._engine

    def _merge(self, answer: dict[str, Any]) -> None:
        start = answer["from"]
        self._edits = {i: b for i, b in self._edits.items() if i < start} | dict(answer["edits"])
        kept = {i: m for i, m in self._inserts.items() if i < start}
        self._inserts = kept | dict(answer["inserts"])
        self._drops = {i for i in self._drops if i < start} | set(answer["drops"])


def recorded_source(store: Store, cwd: str) -> FileSource:
    """Files as the recorded results tell of them."""
    return RecordedSource(store, FilesystemMap(REPLAY_FILESYSTEM, [], cwd=cwd))


def replay_file(path: Path, home: Path, options: Options) -> SessionResult:
    """Replay one session file on the (fresh) store in `home`; errors are part of the result."""
    result = SessionResult(file=path.name)
    try:
        transcript = load_transcript(path)
        result.tool_calls = transcript.tool_calls
        host = Host(home, transcript, options)
        try:
            for number, call in enumerate(transcript.calls, start=1):
                if (
                    options.restart_every
                    and number > 1
                    and (number - 1) % options.restart_every == 0
                ):
                    host.restart()
                _one_call(host, transcript, call, number, options, result)
        finally:
            host.close()
    except (ForedeckError, OSError, ValueError, KeyError, TypeError) as error:
        result.error = f"{type(error).__name__}: {error}"
    return result


def _one_call(
    host: Host,
    transcript: Transcript,
    call: RecordedCall,
    number: int,
    options: Options,
    result: SessionResult,
) -> None:
    prompt, _ = host.call(call)
    result.calls += 1
    result.invalid_prompts += bool(find_faults(prompt))
    plain = sum(_chars(r.message) for r in transcript.messages[: call.seen])
    ours = sum(map(_chars, prompt))
    result.chars_plain += plain
    result.chars_foredeck += ours
    result.peak_plain = max(result.peak_plain, plain)
    result.peak_foredeck = max(result.peak_foredeck, ours)
    if options.prompts is not None:
        _write_prompt(options.prompts / transcript.path.stem, number, call, prompt)


def _chars(message: Message) -> int:
    content = message.get("content")
    if isinstance(content, str):
        return len(content)
    if isinstance(content, list):
        return blocks_chars(block for block in content if isinstance(block, dict))
    texts = (message.get(name) for name in ("command", "output", "summary"))
    return sum(len(text) for text in texts if isinstance(text, str))


def _write_prompt(folder: Path, number: int, call: RecordedCall, prompt: list[Message]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    body = {"call": number, "time_ms": call.time_ms, "model": call.name, "messages": prompt}
    text = json.dumps(body, ensure_ascii=False, indent=1)
    (folder / f"{number:04d}.json").write_bytes(text.encode(errors="surrogatepass"))


def replay(
    paths: list[Path],
    options: Options,
    *,
    keep: Path | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> dict[str, Any]:
    """Replay session files, each on a private store of its own.

    Returns `{"sessions": [...], "total": {...}}`. `keep`: folder in which the stores are left,
    one folder for each session file.
    """
    sessions: list[SessionResult] = []
    for number, path in enumerate(paths, start=1):
        if progress is not None:
            progress(number, len(paths), path.name)
        with _home(keep, path) as home:
            sessions.append(replay_file(path, home, options))
    return {"sessions": [asdict(s) for s in sessions], "total": _total(sessions)}


@contextmanager
def _home(keep: Path | None, path: Path) -> Iterator[Path]:
    if keep is not None:
        home = keep / path.stem
        if home.exists() and any(home.iterdir()):
            raise ForedeckError(f"{home} is not empty: name another folder for --keep.")
        home.mkdir(parents=True, exist_ok=True)
        yield home
        return
    home = Path(tempfile.mkdtemp(prefix="foredeck-replay-"))
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _total(sessions: list[SessionResult]) -> dict[str, Any]:
    names = ("calls", "tool_calls", "invalid_prompts", "chars_plain", "chars_foredeck")
    total: dict[str, Any] = {name: sum(getattr(s, name) for s in sessions) for name in names}
    total["sessions"] = len(sessions)
    total["errors"] = sum(1 for s in sessions if s.error)
    return total
