"""Driving the engine with recorded sessions, call by call.

No model runs: what is measured is what a model would have been shown, not what it would have
done with it.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from foredeck.accounting.comparison import Comparison
from foredeck.accounting.judge import Facts, Judge, Judgement
from foredeck.config import Config
from foredeck.context.messages.items import blocks_chars
from foredeck.errors import ForedeckError
from foredeck.hosts.pi.transcripts import Message, RecordedCall, Transcript, load_transcript
from foredeck.hosts.pi.validity import find_faults
from foredeck.model.call_values import Decision
from foredeck.model.calls import in_order
from foredeck.replay.options import ReplayOptions
from foredeck.replay.replayed_session import ReplayedSession
from foredeck.store.registry import store_kind

_PREFIX = "foredeck-replay-"


class ReplayError(ForedeckError):
    """The replay cannot be done as asked."""

    exit_code = 2


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
    rebases: int = 0
    """Calls at which sent bytes were written anew."""
    decisions: dict[str, int] = field(default_factory=dict)
    """How many calls were appended to (`append`), and how many rebased for each reason."""
    collapsed: int = 0
    """Messages that are a reference line at the last call."""
    objects: int = 0
    """Objects in the session's index at the last call."""
    skipped_lines: int = 0
    """Lines of the file that are no JSON: one that was cut off has one."""


def replay_file(
    path: Path,
    home: Path,
    options: ReplayOptions,
    comparison: Comparison | None = None,
    others: Sequence[ReplayOptions] = (),
) -> SessionResult:
    """Replay one session file on the (fresh) store in `home`; errors are part of the result.

    `comparison` takes in the judgements of this replay, of the host alone, and of `others`: more
    ways to assemble the same session, of which nothing else is told.
    """
    result = SessionResult(file=path.name)
    try:
        transcript = load_transcript(path)
        result.tool_calls, result.skipped_lines = transcript.tool_calls, transcript.skipped
        _clear_prompts(options.prompts, path)
        facts = Facts.of(transcript) if comparison else None
        judge = comparison.judge(facts) if comparison and facts else None
        _drive(home, transcript, options, result, judge)
        _take_records(result, transcript.id, options.config(home))
        if comparison and facts and judge:
            judged = [judge.judgement, *(_judge(transcript, facts, o, comparison) for o in others)]
            comparison.add_plain(transcript, facts)
            for each, judgement in zip((options, *others), judged, strict=True):
                comparison.add(each.label, judgement)
    except Exception as error:  # one bad file must not end the replay of the others
        result.error = f"{type(error).__name__}: {error}"
    return result


def _drive(
    home: Path,
    transcript: Transcript,
    options: ReplayOptions,
    result: SessionResult,
    judge: Judge | None,
) -> None:
    """Every recorded call of a session."""
    with closing(ReplayedSession(home, transcript, options)) as host:
        for number, call in enumerate(transcript.calls, start=1):
            if _restarts_before(number, options.restart_every):
                host.restart()
            _one_call(host, transcript, call, number, options, result, judge)


def _judge(
    transcript: Transcript, facts: Facts, options: ReplayOptions, comparison: Comparison
) -> Judgement:
    """What one more way to assemble a session comes to."""
    judge = comparison.judge(facts)
    with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as home:
        _drive(Path(home), transcript, options, SessionResult(transcript.path.name), judge)
    return judge.judgement


def _restarts_before(number: int, every: int | None) -> bool:
    return every is not None and number > 1 and (number - 1) % every == 0


def _take_records(result: SessionResult, session: str, config: Config) -> None:
    """What the call records tell: decisions, and how things stood at the last call."""
    with closing(store_kind(config.store).open_whole(config)) as store:
        heads = store.query("call", {"session": session})
        records = in_order(head.fields for head in heads)
    reasons = Counter(_reason(record.decision) for record in records)
    result.decisions = dict(sorted(reasons.items()))
    result.rebases = sum(record.decision.is_rebase for record in records)
    if records:
        stats = records[-1].stats
        result.collapsed, result.objects = stats.folded, stats.objects


def _reason(decision: Decision) -> str:
    return str(decision.reason) if decision.is_rebase else decision.kind


def _one_call(
    host: ReplayedSession,
    transcript: Transcript,
    call: RecordedCall,
    number: int,
    options: ReplayOptions,
    result: SessionResult,
    judge: Judge | None,
) -> None:
    prompt, decision = host.call(call)
    if judge is not None:
        reason = decision.reason if decision.is_rebase else None
        judge.see(call, prompt, reason, host.marker)
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


def _clear_prompts(folder: Path | None, path: Path) -> None:
    """Remove what an earlier replay of this file wrote: it may have had more calls."""
    if folder is not None:
        for old in (folder / path.stem).glob("*.json"):
            if old.stem.isdecimal():
                old.unlink()


def _write_prompt(folder: Path, number: int, call: RecordedCall, prompt: list[Message]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    body = {"call": number, "time_ms": call.time_ms, "model": call.name, "messages": prompt}
    text = json.dumps(body, ensure_ascii=False, indent=1)
    (folder / f"{number:04d}.json").write_bytes(text.encode(errors="surrogatepass"))


def replay(
    paths: list[Path],
    options: ReplayOptions,
    *,
    keep: Path | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    others: Sequence[ReplayOptions] = (),
) -> dict[str, Any]:
    """Replay session files, each on a private store of its own.

    Returns `{"sessions": [...], "total": {...}, "table": [...]}`; the table compares costs and
    evidence of the host alone, of `options` and of `others`. `keep`: folder in which the stores
    are left, one folder for each session file. `progress` is told the number of a file, how many
    there are, and its name, before it is begun. Raises `ReplayError` or `ConfigError`, before
    anything is done, where the options cannot be followed.
    """
    _check(paths, options, keep)
    comparison = Comparison(options.rule())
    sessions: list[SessionResult] = []
    with store_kind(options.store).empty_stores() as settings_of:
        for number, path in enumerate(paths, start=1):
            if progress is not None:
                progress(number, len(paths), path.name)
            own = replace(options, settings=(*options.settings, *settings_of(number)))
            with _home(keep, path) as home:
                sessions.append(replay_file(path, home, own, comparison, others))
    return {
        "sessions": [asdict(s) for s in sessions],
        "total": _total(sessions),
        "table": comparison.table(),
    }


def _check(paths: list[Path], options: ReplayOptions, keep: Path | None) -> None:
    options.config(Path(tempfile.gettempdir()))
    if options.restart_every is not None and options.restart_every < 1:
        raise ReplayError("The engine can be restarted every 1 call or more.")
    if keep is not None and not store_kind(options.store).is_one_file:
        raise ReplayError("--keep leaves SQLite stores behind; a store in XTDB ends with the run.")
    if keep is not None or options.prompts is not None:
        _check_stems(paths)
    if keep is not None:
        for path in paths:
            _check_empty(_kept(keep, path))


def _check_empty(home: Path) -> None:
    if home.exists() and (not home.is_dir() or any(home.iterdir())):
        raise ReplayError(f"{home} is there already: name another folder for --keep.")


def _check_stems(paths: list[Path]) -> None:
    """Two files with one stem would write to one folder."""
    known: dict[str, Path] = {}
    for path in paths:
        other = known.setdefault(path.stem, path)
        if other is not path:
            raise ReplayError(
                f"{other} and {path} have the same name, and folders of --prompts and --keep are "
                "named by it: replay them one at a time, into different folders."
            )


def _kept(keep: Path, path: Path) -> Path:
    return keep / path.stem


@contextmanager
def _home(keep: Path | None, path: Path) -> Iterator[Path]:
    if keep is not None:
        home = _kept(keep, path).absolute()
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        yield home
        return
    with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as name:
        yield Path(name)


def _total(sessions: list[SessionResult]) -> dict[str, Any]:
    names = ("calls", "tool_calls", "invalid_prompts", "chars_plain", "chars_foredeck", "rebases")
    total: dict[str, Any] = {name: sum(getattr(s, name) for s in sessions) for name in names}
    decisions: Counter[str] = Counter()
    for session in sessions:
        decisions.update(session.decisions)
    total["decisions"] = dict(sorted(decisions.items()))
    total["sessions"] = len(sessions)
    total["errors"] = sum(1 for s in sessions if s.error)
    return total
