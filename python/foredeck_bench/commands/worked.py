"""`foredeck bench worked`: the lines at failing commands, over recorded sessions, to be read."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from foredeck.cli.common import add_json_flag
from foredeck.cli.output import print_json
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command
from foredeck.model.quoting import printable

SHOWN_CHARS = 300


def _run(args: Namespace) -> int:
    from foredeck_bench.worked import measure_worked

    with Progress("reading") as progress:
        found = measure_worked(args.path, progress.advance)
    if args.json:
        print_json(found)
        return 0
    for number, hit in enumerate(found["hits"], 1):
        print(f"{number}. {printable(hit['command'][:SHOWN_CHARS])}")
        print(f"   said:      {printable(hit['complaint'][:SHOWN_CHARS])}")
        print(f"   worked as: {printable(hit['worked'])}\n")
    counts = ("commands", "failed", "complaints", "lessons")
    run, failed, wrongly, cured = (f"{found[name]:,}" for name in counts)
    print(
        f"{run} commands, {failed} failed, {wrongly} called wrongly, {cured} worked in another "
        f"form soon after: {len(found['hits'])} lines"
    )
    return 0


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "path", metavar="PATH", nargs="+", type=Path, help="histories: files or folders"
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Print what a failing command would have been answered: the form in which it had worked\n"
        "after it had failed before. All sessions count as of one project, in the order of time.\n"
        "The lines are there to be read: whether one is right is for people to say."
    ),
    example="foredeck bench worked ../shared/history",
    configure=_configure,
    run=_run,
)
