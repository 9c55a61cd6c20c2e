"""Weighs rules and constants against each other over sets of recorded sessions.

    python -m foredeck_bench.weigh [--jobs N] [--variant NAME:KEY=VALUE,...]... PATH...

Each PATH is a set of its own, so that what was found on one can be tested on another. What plain
Pi costs and shows stands first; without compaction it shows all that a recording holds. The first
variant is what the others are compared with; without any it is the default. For each of the others
it is said by repository what it changes, and what it changes over all repositories but one: a rule
that pays in only one of them has learned that one.
"""

from __future__ import annotations

import sys
import tempfile
from argparse import ArgumentParser, ArgumentTypeError
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from foredeck.accounting.comparison import PLAIN, WITHOUT, Comparison
from foredeck.accounting.judge import Judgement, Rule
from foredeck.cli.output import table
from foredeck.cli.progress import Progress
from foredeck.errors import ForedeckError
from foredeck.histories.recordings import find_recordings
from foredeck.lookup.texts import counted
from foredeck.replay.options import ReplayOptions
from foredeck.replay.run import replay_file

HEAD = (
    *("", "cost", "all-in", "edits", "names", "code", "bare", "own"),
    *("worst", "over", "rebases"),
)

Judged = Mapping[str, Judgement]
"""What one session came to, by row."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """One session: the repository that it is from, and its judgements."""

    repository: str
    judged: Judged


def main(arguments: Sequence[str]) -> int:
    """Replay, and print a table for each set. Returns the exit code."""
    parser = ArgumentParser(prog="python -m foredeck_bench.weigh", description=__doc__)
    parser.add_argument("paths", metavar="PATH", nargs="+", type=Path)
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: %(default)s)")
    parser.add_argument("--cache", choices=("ideal", "anthropic", "openai"), default="ideal")
    parser.add_argument(
        "--variant", type=_variant, action="append", default=[], help="NAME:KEY=VALUE,KEY=VALUE"
    )
    asked = parser.parse_args(arguments)
    variants = [
        ReplayOptions(name=name, settings=settings, cache=asked.cache)
        for name, settings in asked.variant or [("default", ())]
    ]
    try:
        for path in asked.paths:
            sessions = weigh(find_recordings([path]), variants, asked.jobs)
            print(f"\n{path.name}: {counted(len(sessions), 'session')}\n")
            print("\n".join(report(sessions, [each.name for each in variants])))
    except ForedeckError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def weigh(paths: Sequence[Path], variants: Sequence[ReplayOptions], jobs: int) -> list[Weighed]:
    """Replay each session with each variant, the sessions in their order.

    Raises `ForedeckError` where one cannot be replayed.
    """
    with Progress("replaying", total=len(paths)) as progress:
        found: list[Weighed] = []
        with ProcessPoolExecutor(max_workers=jobs) as pool:
            for path, each in zip(paths, pool.map(partial(_weighed, variants), paths), strict=True):
                found.append(each)
                progress.advance(note=path.name)
    return found


def report(sessions: Sequence[Weighed], names: Sequence[str]) -> Iterator[str]:
    """The lines of a set: a table of all, then what each variant changes by repository."""
    plain = _sum(sessions, PLAIN)
    rows = [_row(name, sessions, plain) for name in (PLAIN, WITHOUT, *names)]
    yield table([HEAD, *rows])
    for name in names[1:]:
        yield f"\n{name}, against {names[0]}, in points of all-in and of edits in view:"
        yield from _by_repository(sessions, names[0], name)


def _weighed(variants: Sequence[ReplayOptions], path: Path) -> Weighed:
    first, *others = variants
    comparison = Comparison(Rule(first.cache, first.ttl_s))
    with tempfile.TemporaryDirectory(prefix="foredeck-weigh-", ignore_cleanup_errors=True) as home:
        result = replay_file(path, Path(home), first, comparison, others)
    if result.error or result.invalid_prompts:
        raise ForedeckError(f"{path.name}: {result.error or 'invalid prompts'}")
    judged = {row: listed[0] for row, listed in comparison.rows.items()}
    return Weighed(repository_of(path), judged)


def repository_of(path: Path) -> str:
    """`owner/name` of a file named `owner__name__...`, else the folder: Pi has one per project."""
    parts = path.stem.split("__")
    return "/".join(parts[:2]) if len(parts) > 2 else path.parent.name


def _variant(text: str) -> tuple[str, tuple[str, ...]]:
    name, _, settings = text.partition(":")
    pairs = tuple(pair for pair in settings.split(",") if pair)
    if not name or not all("=" in pair for pair in pairs):
        raise ArgumentTypeError(f"{text!r} is not NAME:KEY=VALUE,KEY=VALUE")
    return name, pairs


def _sum(sessions: Sequence[Weighed], row: str) -> Judgement:
    total = Judgement(sessions[0].judged[row].rule) if sessions else Judgement()
    for session in sessions:
        total.add(session.judged[row])
    return total


def _row(name: str, sessions: Sequence[Weighed], plain: Judgement) -> tuple[str, ...]:
    told = _sum(sessions, name)
    pairs = [(each.judged[name].cost, each.judged[PLAIN].cost) for each in sessions]
    beyond = sum(ours - theirs > max(0.02 * theirs, 2000) for ours, theirs in pairs)
    return (
        name,
        *(_share(part, plain.cost) for part in (told.cost, told.all_in)),
        _share(told.edits_seen, told.edits),
        _share(told.names_seen, told.names),
        _share(told.code_names_seen, told.code_names),
        _share(told.code_names_itself, told.code_names),
        f"{_share(told.own_words_seen, told.own_words)} of {told.own_words}",
        _share(*max(pairs, key=lambda pair: pair[0] / (pair[1] or 1))),
        str(beyond),
        " ".join(f"{reason} {count}" for reason, count in sorted(told.rebases.items())),
    )


def _by_repository(sessions: Sequence[Weighed], base: str, name: str) -> Iterator[str]:
    groups: defaultdict[str, list[Weighed]] = defaultdict(list)
    for session in sessions:
        groups[session.repository].append(session)
    rows = [("", "calls", "all-in", "edits", "all-in without it", "edits without it")]
    for repository, own in sorted(groups.items()):
        rest = [each for each in sessions if each.repository != repository]
        calls = str(_sum(own, PLAIN).calls)
        without = _changes(rest, base, name) if rest else ("-", "-")
        rows.append((repository, calls, *_changes(own, base, name), *without))
    yield table(rows)


def _changes(sessions: Sequence[Weighed], base: str, name: str) -> tuple[str, str]:
    plain, before, after = (_sum(sessions, row) for row in (PLAIN, base, name))
    cost = 100 * (after.all_in - before.all_in) / plain.cost if plain.cost else 0.0
    edits = 100 * (after.edits_seen - before.edits_seen) / plain.edits if plain.edits else 0.0
    return f"{cost:+.2f}", f"{edits:+.2f}"


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}" if whole else "-"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
