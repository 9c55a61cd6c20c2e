"""`foredeck replay`: recorded sessions through the engine, on private stores."""

from __future__ import annotations

import json
import os
import tempfile
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from foredeck.accounting.cache import chars_of
from foredeck.accounting.figure import CostFigure, unpriced_lines
from foredeck.cli.output import Progress, answer, coloured, filled, fitted_table
from foredeck.context.messages.shape import Message, find_faults
from foredeck.errors import CommandRefused, ForedeckError
from foredeck.model.call_values import CHARS_PER_TOKEN, DEFAULT_TTL_S, SHORT_REASONS, Decision
from foredeck.model.calls import CallRecord, in_order
from foredeck.model.figures import counted, short_count
from foredeck.model.own_tools import DEFAULT_FACILITIES, Facility, definition_chars
from foredeck.regular_files import open_regular
from foredeck_agents.histories.lines import lines_lost
from foredeck_agents.histories.recordings import find_recordings, load_recording, stem_of
from foredeck_agents.histories.records import RecordedCall, TranscriptError
from foredeck_lab.replay.options import ReplayOptions, replayed_model
from foredeck_lab.replay.replayed_session import replayed

_PREFIX = "foredeck-replay-"


Advance = Callable[[str, int, int], None]
"""A file, its calls made, and their number."""


def replay_file(
    path: Path,
    home: Path,
    options: ReplayOptions,
    advance: Advance = lambda _name, _done, _calls: None,
) -> tuple[SessionResult, CostFigure]:
    """Replays one file on a fresh store; an error is part of the result."""
    result, figure = SessionResult(file=path.name), CostFigure()
    try:
        transcript = load_recording(path)
        result.tool_calls, result.skipped_lines = transcript.tool_calls, transcript.skipped
        result.lost_lines = transcript.lost
        if options.prompts is not None:
            clear_prompts(options.prompts / stem_of(path))

        def count(number: int, call: RecordedCall, prompt: list[Message]) -> None:
            result.add_call((r.message for r in transcript.shown_to(call)), prompt)
            if options.prompts is not None:
                write_prompt(options.prompts / stem_of(path), number, call, prompt)
            advance(path.name, number, len(transcript.calls))

        with replayed(transcript, options, count, home) as session_replayed:
            heads = session_replayed.store.query("call", {"session": transcript.id})
            result.add_records(list(in_order(head.fields for head in heads)))
            figure = session_replayed.figure()
            if (warmed := session_replayed.warmed) is not None:
                result.refreshes = (warmed.plain.refreshes, warmed.ours.refreshes)
        result.cost_plain, result.cost_foredeck = figure.plain, figure.ours
        result.in_money = figure.in_money
    except Exception as error:  # one bad file must not end the replay of the others
        kind = "" if isinstance(error, ForedeckError) else f"{type(error).__name__}: "
        result.error = f"{kind}{error}"
    return result, figure


def replay(
    paths: list[Path],
    options: ReplayOptions,
    *,
    keep: Path | None = None,
    advance: Advance = lambda _name, _done, _calls: None,
) -> dict[str, Any]:
    """Replays session files, each on a private store.

    Returns `{"sessions": [...], "total": {...}, "costs": [...]}`. Raises `CommandRefused` or
    `ConfigError` before it starts.
    """
    _check(paths, options, keep)
    sessions: list[SessionResult] = []
    figures: dict[bool, CostFigure] = {}
    for path in paths:
        advance(path.name, 0, 0)
        with _home(keep, path) as home:
            result, figure = replay_file(path, home, options, advance)
        sessions.append(result)
        if figure.calls:
            sum_so_far = figures.get(figure.in_money, CostFigure())
            figures[figure.in_money] = sum_so_far + figure
    return {
        "sessions": [asdict(s) for s in sessions],
        "total": total_of(sessions),
        "costs": [figures[unit].to_json() for unit in (True, False) if unit in figures],
    }


def _check(paths: list[Path], options: ReplayOptions, keep: Path | None) -> None:
    options.config(Path(tempfile.gettempdir()))
    options.warmer()
    if options.restart_every is not None and options.restart_every < 1:
        raise CommandRefused("The engine can be restarted every 1 call or more.")
    if keep is not None or options.prompts is not None:
        _check_stems(paths)
    if keep is not None:
        for path in paths:
            _check_empty(_kept(keep, path))


def _check_empty(home: Path) -> None:
    if home.exists() and (not home.is_dir() or any(home.iterdir())):
        raise CommandRefused(f"{home} is there already: name another folder for --keep.")


def _check_stems(paths: list[Path]) -> None:
    path_by_stem: dict[str, Path] = {}
    for path in paths:
        other = path_by_stem.setdefault(stem_of(path), path)
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
    """Removes an earlier replay's prompts. Raises `CommandRefused` for a link, and `OSError`."""
    if folder.is_symlink():
        raise CommandRefused(f"{folder} is a link: name another folder for --prompts.")
    for old in folder.glob("*.json"):
        if old.stem.isdecimal():
            old.unlink()


def write_prompt(folder: Path, number: int, call: RecordedCall, prompt: list[Message]) -> None:
    """Writes over nothing. Raises `OSError`."""
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
    """One session's outcome; characters are summed over calls."""

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
    """Plain Pi's, in money, or tokens without prices."""
    cost_foredeck: float = 0.0
    in_money: bool = True
    rebases: int = 0
    decisions: dict[str, int] = field(default_factory=dict)
    """Calls by decision: `append`, or the reason of a rebase."""
    folded: int = 0
    objects: int = 0
    skipped_lines: int = 0
    refreshes: tuple[int, int] = (0, 0)
    """Warmings of plain Pi's prompts, and foredeck's."""
    lost_lines: dict[str, list[int]] = field(default_factory=dict)
    """Numbers of the first unread lines, by reason."""

    def add_call(self, plain: Iterable[Message], prompt: Sequence[Message]) -> None:
        plain_chars, our_chars = sum(map(chars_of, plain)), sum(map(chars_of, prompt))
        self.calls += 1
        self.invalid_prompts += bool(find_faults(prompt))
        self.chars_plain += plain_chars
        self.chars_foredeck += our_chars
        self.peak_plain = max(self.peak_plain, plain_chars)
        self.peak_foredeck = max(self.peak_foredeck, our_chars)

    def add_records(self, records: Sequence[CallRecord]) -> None:
        reasons = Counter(_reason(record.decision) for record in records)
        self.decisions = dict(sorted(reasons.items()))
        self.rebases = sum(record.decision.is_rebase for record in records)
        if records:
            stats = records[-1].stats
            self.folded, self.objects = stats.folded, stats.objects


def total_of(sessions: Sequence[SessionResult]) -> dict[str, Any]:
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


_NAME_WIDTH = 16
_NO_REBASES = ("append", "host")


def run(args: Namespace) -> int:
    """`foredeck replay`."""
    paths = find_recordings(args.paths)
    tools = DEFAULT_FACILITIES if args.tools is None else args.tools
    model = replayed_model(args.as_model) if args.as_model else None
    options = ReplayOptions(
        layout=args.layout,
        policy=args.policy,
        prompts=args.prompts,
        window=args.window,
        settings=tuple(args.set),
        tools=tools,
        ttl_s=args.ttl or (model.ttl_s if model else DEFAULT_TTL_S),
        cache=args.cache or (model.cache if model else "ideal"),
        prices=args.prices,
        as_model=model,
        warm=args.warm,
    )
    with Progress("replaying file", total=len(paths)) as progress:

        def advance(name: str, done: int, calls: int) -> None:
            # Before a file's first call it is not known yet how many it has.
            note = f"call {done}/{calls}, {name}" if calls else name
            progress.advance(0 if calls else 1, note=note)

        result = replay(paths, options, keep=args.keep, advance=advance)
    if (
        len(paths) == 1
        and not result["total"]["calls"]
        and (error := result["sessions"][0]["error"])
    ):
        raise TranscriptError(error)
    total = result["total"]
    code = 1 if total["errors"] or total["invalid_prompts"] else 0
    return answer(args, result, _lines(result, args, tools), code)


def _lines(result: dict[str, Any], args: Namespace, tools: tuple[Facility, ...]) -> Iterator[str]:
    sessions, total = result["sessions"], result["total"]
    yield from (f"{cost['text']}." for cost in result["costs"])
    yield from unpriced_lines(name for cost in result["costs"] for name in cost["unpriced"])
    plain, ours = (sum(session["refreshes"][side] for session in sessions) for side in (0, 1))
    if plain or ours:
        yield (
            f"Sent again to keep the cache warm: plain Pi's prompts {counted(plain, 'time')}, "
            f"foredeck's {counted(ours, 'time')}; both are counted."
        )
    yield f"{_verdict(total)}\n"
    in_money = any(cost["unit"] == "dollars" for cost in result["costs"])
    unit = "" if in_money else " tokens"
    costs = (f"plain Pi{unit}", f"foredeck{unit}", "saved")
    rows: list[tuple[str, ...]] = [("session", "calls", *costs, "peak", "folded", "rewritten")]
    rows += [_session_row(session, in_money=in_money) for session in sessions]
    if len(sessions) > 1:
        own = (_figure(session) for session in sessions if session["in_money"] == in_money)
        rows.append(_row("total", total, sum(own, CostFigure())))
    yield fitted_table(rows, goes_on=True)
    for session in sessions:
        for trouble in _troubles(session):
            yield coloured(f"{session['file']}: {trouble}", "red")
    note = (
        "peak: characters of the largest prompt, with foredeck; folded: objects whose content no "
        "message shows at the end (parts of messages fold, too, and are not counted); rewritten: "
        "how often the prompt was, and why. No model ran: this is what a model would have been "
        "shown, not what it would have done with it."
    )
    yield f"\n{filled(note)}"
    if args.keep is not None:
        warmth = ", and plain Pi's cache as warm as foredeck's" if args.warm else ""
        counts = f"{CHARS_PER_TOKEN} characters as a token{warmth}"
        yield filled(
            f"In what --keep leaves, `foredeck cost` shows other figures: it counts {counts}."
        )
    each = ", ".join(f"{facility} {definition_chars(facility) // 4}" for facility in tools)
    tokens = f"{definition_chars(*tools) // 4} tokens{f' ({each})' if each else ''}"
    yield f"Definitions of foredeck's tools, in every prompt: {tokens}."


def _row(
    name: str, counts: dict[str, Any], figure: CostFigure, peak: str = "", folded: str = ""
) -> tuple[str, ...]:
    reasons = ((SHORT_REASONS.get(why, why), n) for why, n in counts["decisions"].items())
    return (
        name,
        str(counts["calls"]),
        # What cannot be counted in the table's unit is blank.
        *((*figure.amounts[:2], figure.share) if figure.calls else ("", "", "")),
        peak,
        folded,
        ", ".join(f"{why} {n}" for why, n in reasons if why not in _NO_REBASES),
    )


def _session_row(session: dict[str, Any], *, in_money: bool) -> tuple[str, ...]:
    name = session["file"].removesuffix(".jsonl")
    if len(name) > _NAME_WIDTH:
        name = f"{name[: _NAME_WIDTH - 9]}…{name[-8:]}"
    figure = _figure(session) if session["in_money"] == in_money else CostFigure()
    return _row(
        name, session, figure, short_count(session["peak_foredeck"]), str(session["folded"])
    )


def _figure(session: dict[str, Any]) -> CostFigure:
    plain, ours = session["cost_plain"], session["cost_foredeck"]
    return CostFigure(session["calls"], plain, ours, in_money=session["in_money"])


def _troubles(session: dict[str, Any]) -> list[str]:
    found = []
    if session["error"]:
        found.append(f"stopped at call {session['calls'] + 1}: {session['error']}")
    if session["invalid_prompts"]:
        found.append(counted(session["invalid_prompts"], "invalid prompt"))
    if session["skipped_lines"]:
        lines = counted(session["skipped_lines"], "line")
        found.append(f"left out {lines}: {lines_lost(session['lost_lines'])}")
    return found


def _verdict(total: dict[str, Any]) -> str:
    text = f"{counted(total['sessions'], 'session')}, {counted(total['calls'], 'call')}"
    if not total["errors"] and not total["invalid_prompts"]:
        return f"{text}: every prompt valid, no error."
    invalid = counted(total["invalid_prompts"], "invalid prompt")
    return f"{text}: {invalid}, {counted(total['errors'], 'error')}."
