"""What the commands of benches share: arguments, progress, and a table of figures."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from foredeck.cli.arguments import positive
from foredeck.cli.output import Progress, print_json, table

STORES = ("sqlite", "xtdb")


def add_rounds(parser: ArgumentParser, what: str) -> None:
    """`--rounds`, with what there are so many of."""
    parser.add_argument(
        "--rounds",
        metavar="N",
        type=positive,
        default=100,
        help=f"{what} (default: %(default)s)",
    )


def add_stores_and_seed(parser: ArgumentParser) -> None:
    """`--store` and `--seed`."""
    parser.add_argument(
        "--store",
        choices=STORES,
        action="append",
        help="only on this store; may be repeated (default: both)",
    )
    parser.add_argument(
        "--seed", metavar="S", type=int, default=1, help="choose the same moments again"
    )


def noting(progress: Progress) -> Callable[[str], None]:
    """Called after each round, with what was done in it."""
    return lambda note: progress.advance(note=note)


def print_figures(found: Mapping[str, Any], args: Namespace, *columns: str) -> None:
    """Print what was found as JSON, or as a table with a figure a row.

    `columns`: what the keys stand for that lie above those of the figures, the outermost first.
    """
    if args.json:
        print_json(found)
    else:
        print(table([(*columns, "figure", "value"), *_rows(found, len(columns))]))


def _rows(found: Mapping[str, Any], levels: int) -> Iterator[tuple[str, ...]]:
    for name, value in found.items():
        if levels:
            yield from ((name, *row) for row in _rows(value, levels - 1))
        else:
            yield name.replace("_", " "), str(value)
