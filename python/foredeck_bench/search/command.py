"""`foredeck bench search`: whether searching finds what is looked for, how fast, at what cost."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from foredeck.cli.arguments import add_json_flag, positive
from foredeck.cli.output import Progress, print_json, table
from foredeck.cli.registry import Command
from foredeck_bench.figures import machine
from foredeck_bench.search.quality import measure_quality
from foredeck_bench.search.scale import measure_scale


def _run(args: Namespace) -> int:
    with Progress("bench search") as progress:
        found: dict[str, Any] = {"machine": machine()}
        if args.folder:
            found["quality"] = measure_quality(args.folder, progress.advance)
        if args.messages:
            found["scale"] = measure_scale(args.messages, progress.advance)
    if args.json:
        print_json(found)
    else:
        _print_text(found)
    return 0


def _print_text(found: dict[str, Any]) -> None:
    for part in ("quality", "scale"):
        rows = [(name, str(value)) for name, value in found.get(part, {}).items()]
        if rows:
            print(f"{part}\n{table(rows)}\n")


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "folder",
        metavar="FOLDER",
        nargs="?",
        type=Path,
        help="histories (*.jsonl, *.jsonl.gz) with queries.tsv: commit, subject and the sessions "
        "that made it, between commas",
    )
    parser.add_argument(
        "--messages", metavar="N", type=positive, help="index this many made-up messages of 1.2 KB"
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Measure `foredeck search`. With FOLDER: read its histories into a scratch store, index\n"
        "them, and look for each commit's session by the commit's subject: how often it comes\n"
        "first, among the first five and ten, the mean reciprocal rank, the same of plain FTS5,\n"
        "latency, rate, and the size of the index as a share of the text. With --messages the\n"
        "same of rate, size and latency at scale."
    ),
    example="foredeck bench search ../shared/history --json",
    configure=_configure,
    run=_run,
)
