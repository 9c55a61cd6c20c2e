"""`foredeck bench library`: the library's loop beside Pi, on the same conversation."""

from __future__ import annotations

import tempfile
from argparse import ArgumentParser, Namespace
from pathlib import Path

from foredeck.cli.common import add_json_flag, positive
from foredeck.cli.eval_command import EvalNotReady, checkout
from foredeck.cli.output import print_json, table
from foredeck.cli.registry import Command
from foredeck.lookup.texts import short_count

ROUNDS = 20


def _run(args: Namespace) -> int:
    from foredeck_bench.library.comparing import compare, to_json
    from foredeck_bench.scripted.pi_process import VERSIONS, checkout_pi

    install = checkout_pi(checkout(), VERSIONS[0])
    if install is None:
        raise EvalNotReady(f"Pi {VERSIONS[0]} is not installed here: run scripts/setup.")
    with tempfile.TemporaryDirectory(prefix="foredeck-library-") as folder:
        sums = compare(args.rounds, Path(folder), install, checkout())
    if args.json:
        print_json({"rounds": args.rounds, "scripted": True, "hosts": to_json(sums)})
    else:
        plain = {"Pi": sums[0].cost, "loop": sums[2].cost}
        rows = [
            ("", "calls", "prompts", "read", "cost", "of plain", "names", "edited", "rebased at")
        ]
        for each in sums:
            share = each.cost / plain["loop" if "loop" in each.host else "Pi"]
            rows.append(
                (
                    each.host,
                    str(each.calls),
                    short_count(each.prompt),
                    short_count(each.read),
                    short_count(round(each.cost)),
                    f"{share:.1%}",
                    f"{each.names:.1%}",
                    f"{each.edited:.1%}",
                    ", ".join(map(str, each.rebases)),
                )
            )
        print(table(rows))
        print(f"\n{args.rounds} rounds, by a scripted model on loopback; tokens are estimates.")
    return 1 if any(each.refused for each in sums) else 0


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--rounds",
        metavar="N",
        type=positive,
        default=ROUNDS,
        help="rounds of the conversation, of six model calls each (default: %(default)s)",
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Have the same conversation, by a scripted model, through the real Pi and through a loop\n"
        "in Python that uses `from foredeck import ContextManager`, each with and without\n"
        "foredeck: prompts, tokens that the provider's cache held, cost in tokens of uncached\n"
        "input, and how much of what the model wrote (names; lines that it replaced) stood in the\n"
        "prompt. Both hosts have Pi's system prompt and tools, and run them. Exit code 1 where a\n"
        "provider would have refused a prompt."
    ),
    example="foredeck bench library --rounds 5 --json",
    configure=_configure,
    run=_run,
)
