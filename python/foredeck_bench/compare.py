"""Compares layouts and policies on recorded sessions: what they cost, and what stayed in view.

python -m foredeck_bench.compare [--observations] PATH...
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from foredeck.accounting.cache import CACHES
from foredeck.cli.arguments.measure import facilities_of
from foredeck.cli.output import Progress, print_json
from foredeck.errors import ForedeckError
from foredeck.model.figures import counted
from foredeck.model.own_tools import DEFAULT_FACILITIES
from foredeck_agents.histories.recordings import find_recordings
from foredeck_bench.judging.comparison import COLUMNS_NOTE, Way, compare, printed, rivals
from foredeck_lab.replay.options import ReplayOptions


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
        print(printed(compared), COLUMNS_NOTE, sep="\n\n", end="\n\n")
        size = f"{counted(len(paths), 'recorded session')}, {counted(compared.calls, 'call')}"
        print(f"{size}: {counted(compared.invalid_prompts, 'invalid prompt')}.")
    print(*compared.errors, sep="\n", file=sys.stderr)
    return 1 if compared.errors or compared.invalid_prompts else 0


def _others(options: ReplayOptions) -> list[Way]:
    if options.observes:
        without = (*options.settings, "observations=off")
        return [Way(replace(options, observes=False, settings=without))]
    return rivals(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
