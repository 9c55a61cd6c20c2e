"""The command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from stocktake.ledger import Ledger
from stocktake.models import StockError
from stocktake.parsing import read_items, read_movements
from stocktake.report import account_report, balance_report, reorder_report, valuation_report
from stocktake.valuation import METHODS


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser(prog="stocktake", description="Books of a small warehouse.")
    commands = parser.add_subparsers(dest="command", required=True)
    _command(commands, "balance", "what is where")
    worth = _command(commands, "valuation", "what it is worth")
    worth.add_argument("--method", choices=sorted(METHODS), default="fifo")
    reorder = _command(commands, "reorder", "what should be bought")
    reorder.add_argument("--below", type=int, help="instead of each item's own quantity")
    account = _command(commands, "account", "all that happened to one item at one place")
    account.add_argument("sku")
    account.add_argument("place")
    return parser


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, summary: str
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=summary, description=summary)
    parser.add_argument("movements", type=Path, help="CSV file of movements")
    parser.add_argument("--items", type=Path, help="CSV file of items (default: beside it)")
    return parser


def load(movements: Path, items: Path | None) -> Ledger:
    """A ledger of these files. Without a file of items every SKU is its own description."""
    described = items or movements.with_name("items.csv")
    if items is None and not described.exists():
        ledger = Ledger({}, strict=False)
    else:
        ledger = Ledger(read_items(described))
    ledger.post_all(read_movements(movements))
    return ledger


def run(arguments: argparse.Namespace) -> str:
    """The text that a command prints."""
    ledger = load(arguments.movements, arguments.items)
    if arguments.command == "balance":
        return balance_report(ledger)
    if arguments.command == "valuation":
        return valuation_report(ledger, arguments.method)
    if arguments.command == "reorder":
        return reorder_report(ledger, arguments.below)
    return account_report(ledger, arguments.sku, arguments.place)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    arguments = build_parser().parse_args(argv)
    try:
        print(run(arguments))
    except (StockError, OSError) as error:
        print(f"stocktake: {error}", file=sys.stderr)
        return 1
    return 0
