"""`foredeck bench search`: whether searching finds what is looked for, how fast, at what cost."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from foredeck.cli.arguments import add_json_flag, positive
from foredeck.cli.output import Progress, print_json, table
from foredeck.cli.registry import Command
from foredeck_bench.figures import machine
from foredeck_bench.search.kills import kill_index_writers
from foredeck_bench.search.names import measure_names
from foredeck_bench.search.quality import measure_quality
from foredeck_bench.search.scale import measure_scale


def _run(args: Namespace) -> int:
    with Progress("bench search") as progress:
        found: dict[str, Any] = {"machine": machine()}
        if args.folder:
            found["quality"] = measure_quality(args.folder, progress.advance)
        if args.names:
            found["names"] = measure_names(args.names, progress.advance)
        if args.messages:
            found["scale"] = measure_scale(args.messages, progress.advance)
        if args.kills:
            found["kills"] = kill_index_writers(args.kills, progress.advance)
    if args.json:
        print_json(found)
    else:
        _print_text(found)
    return 1 if found.get("kills", {}).get("differed") else 0


def _print_text(found: dict[str, Any]) -> None:
    for part in ("quality", "names", "scale", "kills"):
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
        "--names",
        metavar="FOLDER",
        type=Path,
        help="histories in which names that a later message used are looked for",
    )
    parser.add_argument(
        "--messages", metavar="N", type=positive, help="index this many made-up messages of 1.2 KB"
    )
    parser.add_argument(
        "--kills", metavar="N", type=positive, help="kill whoever makes the index, this many times"
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Measure `foredeck search`. With FOLDER: read its histories into a scratch store, index\n"
        "them, and look for each commit's session by the commit's subject: how often it comes\n"
        "first, among the first five and ten, the mean reciprocal rank, the same of plain FTS5,\n"
        "latency, rate, and the size of the index as a share of the text. With --names: names\n"
        "that just one text of a session had until another used them, and whether that text comes\n"
        "first and among the first five, of what the session held by then. With --messages the\n"
        "same of rate, size and latency at scale; with --kills an index must equal one made at\n"
        "once, however often its writer was killed: the exit code is 1 if it does not."
    ),
    example="foredeck bench search ../shared/history --json",
    configure=_configure,
    run=_run,
)
