"""Driving an engine with recorded sessions, call by call.

No model runs: this shows what a model would have seen, not what it would have done with it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from foredeck.accounting.comparison import Comparison
from foredeck.accounting.judge import Judge, Judgement, SessionFacts
from foredeck.config import Config
from foredeck.errors import ForedeckError
from foredeck.histories.recordings import load_recording, stem_of
from foredeck.hosts.pi.transcripts import Transcript
from foredeck.model.calls import CallRecord, in_order
from foredeck.replay.options import ReplayOptions
from foredeck.replay.prompt_files import clear_prompts, write_prompt
from foredeck.replay.replayed_session import ReplayedSession
from foredeck.replay.session_result import SessionResult, total_of
from foredeck.store.registry import store_kind

_PREFIX = "foredeck-replay-"


class ReplayError(ForedeckError):
    """The replay cannot be done as asked."""

    exit_code = 2


def replay_file(
    path: Path,
    home: Path,
    options: ReplayOptions,
    comparison: Comparison,
    others: Sequence[ReplayOptions] = (),
) -> SessionResult:
    """Replay one session file on the (fresh) store in `home`; an error is part of the result.

    `comparison` takes in the judgements of this replay, of the host alone, and of `others`: more
    ways to assemble the same session, which leave nothing else behind.
    """
    result = SessionResult(file=path.name)
    try:
        transcript = load_recording(path)
        result.tool_calls, result.skipped_lines = transcript.tool_calls, transcript.skipped
        if options.prompts is not None:
            clear_prompts(options.prompts / stem_of(path))
        facts = SessionFacts.of(transcript)
        judge = comparison.judge(facts, options.definition_tokens)
        _drive(home, transcript, options, judge, result)
        result.add_records(_records(transcript.id, options.config(home)))
        others_judged = (judge_replay(transcript, facts, each, comparison) for each in others)
        judged = [judge.judgement, *others_judged]
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
    judge: Judge,
    result: SessionResult | None = None,
) -> None:
    """Make every recorded call of a session; `result` takes in its figures."""
    with closing(ReplayedSession(home, transcript, options)) as session:
        for number, call in enumerate(transcript.calls, start=1):
            if _restarts_before(number, options.restart_every):
                session.restart()
            prompt, decision = session.call(call)
            reason = decision.reason if decision.is_rebase else None
            judge.see(call, prompt, reason, session.marker)
            if result is not None:
                result.add_call((r.message for r in transcript.messages[: call.seen]), prompt)
            if options.prompts is not None:
                write_prompt(options.prompts / stem_of(transcript.path), number, call, prompt)
        if session.observer is not None:
            bill = session.observer.bill
            judge.judgement.asked, judge.judgement.questions = bill.cost, bill.questions


def judge_replay(
    transcript: Transcript,
    facts: SessionFacts,
    options: ReplayOptions,
    comparison: Comparison,
) -> Judgement:
    """The judgement on one way to assemble a session, which is replayed for it and leaves nothing
    behind."""
    judge = comparison.judge(facts, options.definition_tokens)
    with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as home:
        _drive(Path(home), transcript, replace(options, prompts=None), judge)
    return judge.judgement


def _restarts_before(number: int, every: int | None) -> bool:
    return every is not None and number > 1 and (number - 1) % every == 0


def _records(session: str, config: Config) -> list[CallRecord]:
    with closing(store_kind(config.store).open_whole(config)) as store:
        heads = store.query("call", {"session": session})
        return list(in_order(head.fields for head in heads))


def replay(
    paths: list[Path],
    options: ReplayOptions,
    *,
    keep: Path | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    others: Sequence[ReplayOptions] = (),
) -> dict[str, Any]:
    """Replay session files, each on a private store of its own.

    Returns `{"sessions": [...], "total": {...}, "table": [...]}`. The table compares the cost and
    the evidence of the host alone, of `options` and of `others`. `keep` is a folder to leave the
    stores in, one folder for each session file. `progress` is called before each file with its
    number, how many there are, and its name. Raises `ReplayError` or `ConfigError`, before it
    starts, where the options cannot be followed.
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
        "total": total_of(sessions),
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
        other = known.setdefault(stem_of(path), path)
        if other is not path:
            raise ReplayError(
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
