"""`foredeck bench wire`: a hostile peer on the engine's pipes."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from foredeck.cli.common import add_json_flag, positive
from foredeck.cli.output import print_json, table
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command


def _run(args: Namespace) -> int:
    from foredeck_bench.wire import run_wire

    with Progress("sending", total=args.messages) as progress:
        report = run_wire(args.messages, args.seed, lambda note: progress.advance(note=note))
    found = report.to_json()
    if args.json:
        print_json({"seed": args.seed, **found})
    else:
        kinds = found.pop("kinds")
        rows = [*found.items(), *((f"sent: {name}", count) for name, count in kinds.items())]
        print(table([("figure", "value"), *((n.replace("_", " "), str(v)) for n, v in rows)]))
    return 0 if found["ok"] else 1


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--messages",
        metavar="N",
        type=positive,
        default=5_000,
        help="hostile messages (default: %(default)s)",
    )
    parser.add_argument("--seed", metavar="S", type=int, default=1, help="send the same again")
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Send the engine what no host should: bytes that are no JSON, JSON of 100,000 levels,\n"
        "lines over the limit, ids twice and answers that nobody waits for, torn and cut lines,\n"
        "line separators of Unicode, requests that are cancelled while they write, ends in\n"
        "mid-line, a host that stops reading. Every fifty messages a good request must be\n"
        "answered. Exit code 1 where an engine crashed or hung, or answered with nonsense."
    ),
    example="foredeck bench wire --json",
    configure=_configure,
    run=_run,
)
