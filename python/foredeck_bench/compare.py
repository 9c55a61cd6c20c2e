"""Compares ways to assemble prompts on recorded sessions: what they cost, and what stayed in view.

    python -m foredeck_bench.compare [--observations] PATH...

Without --observations, the layouts and policies that there are.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from foredeck.accounting.cache import CACHES
from foredeck.cli.arguments.measure import facilities_of
from foredeck.cli.output import Progress, print_json, table
from foredeck.errors import ForedeckError
from foredeck.model.figures import counted, short_count
from foredeck.model.own_tools import DEFAULT_FACILITIES
from foredeck_agents.histories.recordings import find_recordings
from foredeck_bench.judging.comparison import Compared, Way, compare, rivals
from foredeck_lab.replay.options import ReplayOptions

_HEAD = (
    *("", "cost", "cached", "uncached", "all-in", "worst", "over"),
    *("edits", "names", "code", "bare", "own", "mean", "peak"),
)
_NOTE = """
cost: of all prompts, as a share of plain Pi's, by --prices; cached, uncached: what of it was read
from the cache, and the rest; all-in: the cost with one more call for each call that lacked
something; worst: the cost of the dearest session, as a share of plain Pi's; over: sessions that
cost more than plain Pi's by over 2% and over 2,000 uncached tokens; edits, names: shares
that were in view of the edited texts, and of the identifiers that can only have been copied from
a tool result, since nobody had written them before; code: those of them that look like code, not
like a number, a date or a hash; bare: the same without digests of folded results; own: of the
identifiers that only the model's own answers had held, and that it used again; mean, peak: tokens
of a prompt. Sizes are calibrated by the recorded usage. Evidence is visibility, not success: no
model ran."""


def main(arguments: Sequence[str]) -> int:
    parser = ArgumentParser(prog="python -m foredeck_bench.compare", description=__doc__)
    parser.add_argument("paths", metavar="PATH", nargs="+", type=Path)
    parser.add_argument("--layout", default="anchored")
    parser.add_argument("--policy", default="adaptive")
    parser.add_argument("--cache", choices=tuple(CACHES), default="ideal")
    parser.add_argument("--prices", default="claude-opus-4-5")
    parser.add_argument("--tools", type=facilities_of, default=DEFAULT_FACILITIES)
    parser.add_argument("--window", type=int, default=200_000)
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[])
    parser.add_argument(
        "--observations",
        action="store_true",
        help="let notes take the place of older chat from the first threshold on, written by a "
        "substitute for a model whose questions are priced; compare with none",
    )
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    options = ReplayOptions(
        layout=chosen.layout,
        policy=chosen.policy,
        cache=chosen.cache,
        prices=chosen.prices,
        window=chosen.window,
        settings=tuple(chosen.set),
        tools=chosen.tools,
        observes=chosen.observations,
    )
    try:
        paths = find_recordings(chosen.paths)
        with Progress("replaying", total=len(paths)) as progress:
            ways = [Way(options), *_others(options)]
            compared = compare(paths, ways, lambda name: progress.advance(note=name))
    except ForedeckError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    if chosen.json:
        print_json(compared.table)
    else:
        print_comparison(compared.table, chosen.cache)
        print(f"{_size(compared)}: {counted(compared.invalid_prompts, 'invalid prompt')}.")
    for error_line in compared.errors:
        print(error_line, file=sys.stderr)
    return 1 if compared.errors or compared.invalid_prompts else 0


def _others(options: ReplayOptions) -> list[Way]:
    if options.observes:
        without = (*options.settings, "observations=off")
        return [Way(replace(options, observes=False, settings=without))]
    return rivals(options)


def _size(compared: Compared) -> str:
    return f"{counted(compared.sessions, 'recorded session')}, {counted(compared.calls, 'call')}"


def print_comparison(rows: list[dict[str, Any]], cache: str) -> None:
    base = next((row["cost"] for row in rows), 0)
    print()
    print(table([_HEAD, *(_row(row, base) for row in rows)]))
    print(_NOTE)
    print(f"\nCost of the same prompts by each cache's rule (planned for: {cache}):")
    for row in rows:
        by_cache = row["cost_percent_by_cache"]
        print(f"  {row['row']}: " + ", ".join(f"{c} {_percent(by_cache[c])}" for c in CACHES))
    for row in (row for row in rows if row.get("questions")):
        share = _percent(100 * row["asked"] / row["cost"] if row["cost"] else None)
        print(
            f"\n{row['row']}: a model asked {row['questions']} times for observations, for "
            f"{share} of the cost, which holds it."
        )
    print("\nTokens that were in the cache and had to be written again, and rebases:")
    for row in rows:
        print(f"  {row['row']}: {_counts(row['lost_tokens'])}; {_counts(row['rebases'])}")
    print()


def _row(row: dict[str, Any], base: float) -> tuple[str, ...]:
    return (
        row["row"],
        _percent(row["cost_percent"]),
        _percent(100 * row["cached"] / base if base else None),
        _percent(100 * row["uncached"] / base if base else None),
        _percent(row["all_in_percent"]),
        _percent(row["worst_percent"]),
        str(row["beyond_limit"]),
        _percent(row["edit_evidence_percent"]),
        _percent(row["identifier_evidence_percent"]),
        _percent(row["code_name_evidence_percent"]),
        _percent(row["bare_code_name_evidence_percent"]),
        _percent(row["own_words_evidence_percent"]),
        short_count(row["mean_tokens"]),
        short_count(row["peak_tokens"]),
    )


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1f}%"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {short_count(count)}" for name, count in counts.items()) or "none"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
