"""`foredeck bench proxy`: what the proxy adds to an agent's requests."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from foredeck.cli.common import add_json_flag, positive
from foredeck.cli.output import print_json, table
from foredeck.cli.registry import Command


def _run(args: Namespace) -> int:
    from foredeck_bench.proxy_load import measure

    found = measure(args.tokens, args.requests, args.clients, args.sessions)
    if args.json:
        print_json(found)
    else:
        print(table([("figure", "value"), *((name, str(value)) for name, value in found.items())]))
    return 0 if found["answered"] == 5 * args.clients else 1


def _configure(parser: ArgumentParser) -> None:
    for name, default, help in (
        ("tokens", 200_000, "of the long conversation"),
        ("requests", 20, "timed on it, each way"),
        ("clients", 20, "at once, with a tenth of that each"),
        ("sessions", 200, "one after the other then, of that size"),
    ):
        parser.add_argument(
            f"--{name}",
            metavar="N",
            type=positive,
            default=default,
            help=f"{help} (default: %(default)s)",
        )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Time the first byte of answers through the proxy, with foredeck and passed on bare,\n"
        "beside the same requests straight to the upstream, which answers at once; then the\n"
        "throughput of a long answer, many clients at once, and many sessions one after the\n"
        "other, with the memory that they take. Exit code 1 where a client was not answered."
    ),
    example="foredeck bench proxy --json",
    configure=_configure,
    run=_run,
)
