"""Driving an engine with recorded sessions, call by call.

No model runs: this shows what a model would have seen, not what it would have done with it.
"""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from foredeck.accounting.figure import CostFigure
from foredeck.accounting.shapes import chars_of
from foredeck.context.messages.shape import Message, find_faults
from foredeck.errors import CommandRefused
from foredeck.histories.recordings import load_recording, stem_of
from foredeck.histories.records import RecordedCall
from foredeck.model.call_values import Decision
from foredeck.model.calls import CallRecord, in_order
from foredeck.regular_files import open_regular
from foredeck.replay.options import ReplayOptions
from foredeck.replay.replayed_session import replayed
from foredeck.store.kind import store_kind

_PREFIX = "foredeck-replay-"


Advance = Callable[[str, int, int], None]
"""Called with the name of a file, how many of its calls are made, and how many there are."""


def replay_file(
    path: Path,
    home: Path,
    options: ReplayOptions,
    advance: Advance = lambda _name, _done, _calls: None,
) -> tuple[SessionResult, CostFigure]:
    """Replay one session file on the (fresh) store in `home`; an error is part of the result.

    The figure is what its calls would have cost, beside plain Pi's.
    """
    result, figure = SessionResult(file=path.name), CostFigure()
    try:
        transcript = load_recording(path)
        if options.as_model is not None:
            transcript = options.as_model.answering(transcript)
        result.tool_calls, result.skipped_lines = transcript.tool_calls, transcript.skipped
        result.lost_lines = transcript.lost
        if options.prompts is not None:
            clear_prompts(options.prompts / stem_of(path))

        def count(number: int, call: RecordedCall, prompt: list[Message]) -> None:
            result.add_call((r.message for r in transcript.shown_to(call)), prompt)
            if options.prompts is not None:
                write_prompt(options.prompts / stem_of(path), number, call, prompt)
            advance(path.name, number, len(transcript.calls))

        with replayed(transcript, options, count, home) as done:
            heads = done.store.query("call", {"session": transcript.id})
            result.add_records(list(in_order(head.fields for head in heads)))
            figure = done.figure()
        result.cost_plain, result.cost_foredeck = figure.plain, figure.ours
    except Exception as error:  # one bad file must not end the replay of the others
        result.error = f"{type(error).__name__}: {error}"
    return result, figure


def replay(
    paths: list[Path],
    options: ReplayOptions,
    *,
    keep: Path | None = None,
    advance: Advance = lambda _name, _done, _calls: None,
) -> dict[str, Any]:
    """Replay session files, each on a private store of its own.

    Returns `{"sessions": [...], "total": {...}, "costs": [...]}`: of the costs one figure in money,
    one in tokens for models without a price, as far as there are such calls. `keep` is a folder to
    leave the stores in, one folder for each session file. `advance` is called before each file, and
    after each of its calls. Raises `CommandRefused` or `ConfigError`,
    before it starts, where the options cannot be followed.
    """
    _check(paths, options, keep)
    sessions: list[SessionResult] = []
    figures: dict[bool, CostFigure] = {}
    with store_kind(options.store).empty_stores() as settings_of:
        for number, path in enumerate(paths, start=1):
            advance(path.name, 0, 0)
            own = replace(options, settings=(*options.settings, *settings_of(number)))
            with _home(keep, path) as home:
                result, figure = replay_file(path, home, own, advance)
            sessions.append(result)
            if figure.calls:
                known = figures.get(figure.in_money, CostFigure())
                figures[figure.in_money] = known + figure
    return {
        "sessions": [asdict(s) for s in sessions],
        "total": total_of(sessions),
        "costs": [figures[unit].to_json() for unit in (True, False) if unit in figures],
    }


def _check(paths: list[Path], options: ReplayOptions, keep: Path | None) -> None:
    options.config(Path(tempfile.gettempdir()))
    options.read_cost()
    if options.restart_every is not None and options.restart_every < 1:
        raise CommandRefused("The engine can be restarted every 1 call or more.")
    if keep is not None and not store_kind(options.store).is_one_file:
        raise CommandRefused(
            "--keep leaves SQLite stores behind; a store in XTDB ends with the run."
        )
    if keep is not None or options.prompts is not None:
        _check_stems(paths)
    if keep is not None:
        for path in paths:
            _check_empty(_kept(keep, path))


def _check_empty(home: Path) -> None:
    if home.exists() and (not home.is_dir() or any(home.iterdir())):
        raise CommandRefused(f"{home} is there already: name another folder for --keep.")


def _check_stems(paths: list[Path]) -> None:
    """Two files with one stem would write to one folder."""
    known: dict[str, Path] = {}
    for path in paths:
        other = known.setdefault(stem_of(path), path)
        if other is not path:
            raise CommandRefused(
                f"{other} and {path} have the same name, and folders of --prompts and --keep are "
                "named by it: replay them one at a time, into different folders."
            )


def _kept(keep: Path, path: Path) -> Path:
    return keep / stem_of(path)


@contextmanager
def _home(keep: Path | None, path: Path) -> Iterator[Path]:
    if keep is not None:
        home = _kept(keep, path).absolute()
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        yield home
        return
    with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as name:
        yield Path(name)


def clear_prompts(folder: Path) -> None:
    """Remove what an earlier replay of the session wrote: it may have had more calls.

    Raises `OSError`, also where the folder is a link.
    """
    if folder.is_symlink():
        raise NotADirectoryError(errno.ENOTDIR, "it is a link, not a folder", str(folder))
    for old in folder.glob("*.json"):
        if old.stem.isdecimal():
            old.unlink()


def write_prompt(folder: Path, number: int, call: RecordedCall, prompt: list[Message]) -> None:
    """Write the prompt of a call to `folder`, over nothing that is there. Raises `OSError`."""
    # A prompt may hold what a user has kept to themselves.
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    body = {"call": number, "time_ms": call.time_ms, "model": call.name, "messages": prompt}
    text = json.dumps(body, ensure_ascii=False, indent=1)
    # Only a new file: a link of that name would have another file written over.
    new = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with os.fdopen(open_regular(folder / f"{number:04d}.json", new), "wb") as file:
        file.write(text.encode(errors="surrogatepass"))


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
    peak_plain: int = 0
    peak_foredeck: int = 0
    cost_plain: float = 0.0
    """What plain Pi's prompts would have cost: money, or tokens at a model without a price."""
    cost_foredeck: float = 0.0
    rebases: int = 0
    """Calls at which bytes that had been sent were rewritten."""
    decisions: dict[str, int] = field(default_factory=dict)
    """How many calls were appended to (`append`), and how many were a rebase for each reason."""
    folded: int = 0
    """Messages that are a reference line at the last call."""
    objects: int = 0
    """Objects in the session's index at the last call."""
    skipped_lines: int = 0
    """Lines of the file that could not be read."""
    lost_lines: dict[str, list[int]] = field(default_factory=dict)
    """The numbers of the first of them, by reason."""

    def add_call(self, plain: Iterable[Message], prompt: Sequence[Message]) -> None:
        """Count a call: what the host alone would have sent, and what foredeck sends."""
        plain_chars, our_chars = sum(map(chars_of, plain)), sum(map(chars_of, prompt))
        self.calls += 1
        self.invalid_prompts += bool(find_faults(prompt))
        self.chars_plain += plain_chars
        self.chars_foredeck += our_chars
        self.peak_plain = max(self.peak_plain, plain_chars)
        self.peak_foredeck = max(self.peak_foredeck, our_chars)

    def add_records(self, records: Sequence[CallRecord]) -> None:
        """Count the decisions of the call records, oldest first; the last one's state counts."""
        reasons = Counter(_reason(record.decision) for record in records)
        self.decisions = dict(sorted(reasons.items()))
        self.rebases = sum(record.decision.is_rebase for record in records)
        if records:
            stats = records[-1].stats
            self.folded, self.objects = stats.folded, stats.objects


def total_of(sessions: Sequence[SessionResult]) -> dict[str, Any]:
    """The sums over all sessions, as `foredeck replay --json` prints them."""
    names = ("calls", "tool_calls", "invalid_prompts", "chars_plain", "chars_foredeck", "rebases")
    total: dict[str, Any] = {name: sum(getattr(s, name) for s in sessions) for name in names}
    decisions: Counter[str] = Counter()
    for session in sessions:
        decisions.update(session.decisions)
    total["decisions"] = dict(sorted(decisions.items()))
    total["sessions"] = len(sessions)
    total["errors"] = sum(1 for s in sessions if s.error)
    return total


def _reason(decision: Decision) -> str:
    return str(decision.reason) if decision.is_rebase else decision.kind
