"""Weighs rules and constants against each other over sets of recorded sessions.

    python -m foredeck_bench.weigh [--jobs N] [--variant NAME:KEY=VALUE,...]... PATH...

Each PATH is a set of its own, so that what was found on one can be tested on another. For each set
it prints

- a table: plain Pi, the simple rules that a user could have had instead, and each variant;
- for each variant but the first, with which it is compared, what it changes by repository, and over
  all repositories but one: a rule that pays in only one of them has learned that one;
- the sessions that the column `over` counts for the first variant, or all (--sessions).

Without --variant there is one, the default settings.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from foredeck.accounting.cache import CACHES
from foredeck.cli.output import Progress, table
from foredeck.errors import ForedeckError
from foredeck.model.call_values import DEFAULT_TTL_S
from foredeck.model.figures import counted, short_count
from foredeck_agents.histories.recordings import find_recordings
from foredeck_bench.judging.comparison import (
    COLUMNS_NOTE,
    Compared,
    JudgedSession,
    Way,
    compare,
    percent,
    printed,
    total,
)
from foredeck_bench.judging.yardsticks import PLAIN
from foredeck_lab.replay.options import ReplayOptions, replayed_model


def main(arguments: Sequence[str]) -> int:
    parser = ArgumentParser(
        prog="python -m foredeck_bench.weigh",
        description=__doc__,
        epilog=COLUMNS_NOTE,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="+",
        type=Path,
        help="a recorded session, or a folder of them",
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: %(default)s)")
    parser.add_argument("--cache", choices=tuple(CACHES), default="ideal", help="default: ideal")
    parser.add_argument(
        "--variant", type=_variant, action="append", default=[], help="NAME:KEY=VALUE,KEY=VALUE"
    )
    parser.add_argument("--sessions", action="store_true", help="print a line for each session")
    parser.add_argument("--as", dest="as_model", help="as if this model had answered")
    parser.add_argument("--warm", action="store_true", help="with --as: as warmed by Pi")
    parser.add_argument("--ttl", type=float, help="seconds that the cache lives")
    parser.add_argument(
        "--observations",
        action="store_true",
        help="let notes take the place of older chat from the first threshold on, written by a "
        "substitute for a model whose questions are priced; a variant with observations=off has "
        "none",
    )
    chosen = parser.parse_args(arguments)
    try:
        model = replayed_model(chosen.as_model) if chosen.as_model else None
        options = ReplayOptions(
            cache=chosen.cache,
            ttl_s=chosen.ttl or (model.ttl_s if model else DEFAULT_TTL_S),
            prices=None if model else "claude-opus-4-5",
            as_model=model,
            warm=chosen.warm,
            observes=chosen.observations,
        )
        variants = [
            Way(replace(options, settings=settings), name)
            for name, settings in chosen.variant or [("default", ())]
        ]
        failed = False
        for path in chosen.paths:
            files = find_recordings([path])
            with Progress("replaying", total=len(files)) as progress:
                compared = compare(
                    files, variants, lambda name: progress.advance(note=name), jobs=chosen.jobs
                )
            print(f"\n{path.name}: {counted(len(compared.sessions), 'session')}\n")
            print("\n".join(report(compared, variants, by_session=chosen.sessions)))
            print(*compared.errors, sep="\n", file=sys.stderr)
            failed = failed or bool(compared.errors or compared.invalid_prompts)
    except ForedeckError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return int(failed)


def _variant(text: str) -> tuple[str, tuple[str, ...]]:
    name, _, settings = text.partition(":")
    pairs = tuple(pair for pair in settings.split(",") if pair)
    if not name or not all("=" in pair for pair in pairs):
        raise ArgumentTypeError(f"{text!r} is not NAME:KEY=VALUE,KEY=VALUE")
    return name, pairs


def report(
    compared: Compared, variants: Sequence[Way], *, by_session: bool = False
) -> Iterator[str]:
    """The lines of a set: all, by repository, and the dear sessions."""
    sessions, first = compared.sessions, variants[0].label
    yield printed(compared)
    head = percent(sum(each.head for each in sessions), total(sessions, PLAIN).cost)
    yield f"system prompt and tools, which nothing changes: {head} of the cost"
    for name in (each.label for each in variants[1:]):
        yield f"\n{name}, against {first}, in points of all-in and of edits in view:"
        yield from _by_repository(sessions, first, name)
    listed = [each for each in sessions if by_session or each.is_dearer(first)]
    if listed:
        yield f"\n{first}, in tokens of uncached input, against the best of the simple rules:"
        yield table([_SESSION_HEAD, *(_session_row(each, first) for each in listed)])


_SESSION_HEAD = ("", "calls", "cost", "with hindsight", "best", "costs", "dearer", "over")


def _session_row(session: JudgedSession, name: str) -> tuple[str, ...]:
    ours, best = session.rows[name], session.best_simple
    least = session.rows[best].cost
    return (
        session.name,
        str(ours.calls),
        short_count(round(ours.cost)),
        short_count(round(session.hindsight)),
        best,
        short_count(round(least)),
        f"{ours.cost - least:+,.0f} ({100 * (ours.cost / least - 1):+.1f}%)" if least else "-",
        "over" if session.is_dearer(name) else "",
    )


def _by_repository(sessions: Sequence[JudgedSession], base: str, name: str) -> Iterator[str]:
    groups: defaultdict[str, list[JudgedSession]] = defaultdict(list)
    for session in sessions:
        groups[session.repository].append(session)
    rows = [("", "calls", "all-in", "edits", "all-in without it", "edits without it")]
    for repository, own in sorted(groups.items()):
        rest = [each for each in sessions if each.repository != repository]
        without = _changes(rest, base, name) if rest else ("-", "-")
        calls = str(total(own, PLAIN).calls)
        rows.append((repository, calls, *_changes(own, base, name), *without))
    yield table(rows)


def _changes(sessions: Sequence[JudgedSession], base: str, name: str) -> tuple[str, str]:
    plain, before, after = (total(sessions, row) for row in (PLAIN, base, name))
    cost = 100 * (after.all_in - before.all_in) / plain.cost if plain.cost else 0.0
    edits = 100 * (after.edits_seen - before.edits_seen) / plain.edits if plain.edits else 0.0
    return f"{cost:+.2f}", f"{edits:+.2f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
