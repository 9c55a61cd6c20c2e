"""`foredeck bench notes`: a vault of notes made by a script, taken in and walked."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from foredeck.cli.common import add_json_flag, positive
from foredeck.cli.output import print_json
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command
from foredeck.lookup.texts import short_count


def _run(args: Namespace) -> int:
    from foredeck_bench.vault import measure_vault

    with Progress("taking in") as progress:
        found = measure_vault(
            args.notes, args.store, lambda path: progress.advance(note=path.rpartition("/")[2])
        )
    if args.json:
        print_json(found)
    else:
        _print(found)
    return 0 if found["ok"] else 1


def _print(found: dict[str, Any]) -> None:
    from foredeck_bench.vault import LIMITS

    print(
        f"{found['notes']:,} notes on {found['store']}: stored in {found['stored_s']:.1f} s, in "
        f"the graph after {found['indexed_s']:.1f} s (busy {found['indexed_cpu_s']:.1f} s); "
        f"once more, unchanged, in {found['again_s']:.1f} s"
    )
    around = f"neighbours at depth 2 ({found['neighbours_nodes']:.0f} objects)"
    print(f"{around}: {_times(found, 'neighbours')}")
    print(f"one changed note, from the disk to the graph: {_times(found, 'changed')}")
    print(
        f"{found['broken']:,} broken references, {found['ambiguous']:,} ambiguous, "
        f"{found['orphans']:,} orphans, found in {found['whole_graph_s']:.1f} s; the graph takes "
        f"{short_count(found['layer_bytes'])}B"
    )
    print(f"a note of 5 MB with 10,000 links is read in {found['long_note_s']:.1f} s")
    for name, limit in LIMITS.items():
        if found[name] > limit:
            print(f"over the limit: {name} {found[name]:.1f}, {limit:.0f} is asked")


def _times(found: dict[str, Any], name: str) -> str:
    return (
        f"median {found[f'{name}_ms']:.1f} ms (busy {found[f'{name}_cpu_ms']:.1f} ms), p95 "
        f"{found[f'{name}_p95_ms']:.1f} ms, most {found[f'{name}_max_ms']:.1f} ms"
    )


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--notes", metavar="N", type=positive, default=10_000, help="notes (default: %(default)s)"
    )
    parser.add_argument(
        "--store",
        choices=("sqlite", "xtdb"),
        default="sqlite",
        help="which store; for xtdb a node in memory is started, of the one that is installed "
        "(default: %(default)s)",
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Make a vault of notes with awkward names, cycles, embeds, broken and ambiguous links;\n"
        "take it in, ask for neighbours at depth 2, and change single notes. Exit code 1 where\n"
        "that takes longer than 30 s, 20 ms or 50 ms (the last two at the 95th percentile).\n"
        "`busy` is processor time: what an idle machine would need."
    ),
    example="foredeck bench notes --json",
    configure=_configure,
    run=_run,
)
