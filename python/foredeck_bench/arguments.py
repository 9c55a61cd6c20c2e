"""Arguments of the benches that kill processes on each store."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable

from foredeck.cli.common import positive
from foredeck.cli.progress import Progress

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
