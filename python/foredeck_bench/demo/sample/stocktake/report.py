"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from stocktake.ledger import Ledger, Line
from stocktake.models import Item
from stocktake.valuation import total, valuation

GAP = "  "


@dataclass(frozen=True)
class Column:
    """A heading, and whether its cells stand to the right."""

    heading: str
    right: bool = False

    def align(self, text: str, width: int) -> str:
        """`text` filled up to `width`."""
        return text.rjust(width) if self.right else text.ljust(width)


def table(
    columns: Sequence[Column], rows: Iterable[Sequence[str]], footer: Sequence[str] = ()
) -> str:
    """A table with a line below its headings, and one above its footer if it has one."""
    body = [list(row) for row in rows]
    for row in body:
        if len(row) != len(columns):
            raise ValueError(f"{len(row)} cells for {len(columns)} columns")
    widths = _widths(columns, [*body, list(footer)] if footer else body)
    rule = GAP.join("-" * width for width in widths)
    lines = [_line(columns, widths, [c.heading for c in columns]), rule]
    lines += [_line(columns, widths, row) for row in body]
    if footer:
        lines += [rule, _line(columns, widths, list(footer))]
    return "\n".join(lines)


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[int]:
    widths = [len(column.heading) for column in columns]
    for row in rows:
        widths = [max(width, len(cell)) for width, cell in zip(widths, row, strict=True)]
    return widths


def _line(columns: Sequence[Column], widths: Sequence[int], cells: Sequence[str]) -> str:
    parts = [c.align(cell, w) for c, w, cell in zip(columns, widths, cells, strict=True)]
    return GAP.join(parts).rstrip()


def amount(value: Decimal) -> str:
    """An amount with thousands apart: 1,234.50."""
    return f"{value:,.2f}"


# ---------------------------------------------------------------- reports


def balance_report(ledger: Ledger) -> str:
    """What is where."""
    columns = [Column("SKU"), Column("Name"), Column("Place"), Column("Pieces", right=True)]
    rows = [
        (sku, ledger.items[sku].name, place, str(count)) for sku, place, count in ledger.balances()
    ]
    pieces = sum(int(row[3]) for row in rows)
    return table(columns, rows, ("", "", "all", str(pieces)))


def valuation_report(ledger: Ledger, method: str = "fifo") -> str:
    """What it is worth."""
    values = valuation(ledger, method)
    columns = [
        Column("SKU"),
        Column("Name"),
        Column("Pieces", right=True),
        Column("Value", right=True),
    ]
    rows = [
        (sku, ledger.items[sku].name, str(ledger.on_hand(sku)), amount(value))
        for sku, value in values.items()
    ]
    return table(columns, rows, ("", "all", "", amount(total(values.values()))))


def reorder_report(ledger: Ledger, below: int | None = None) -> str:
    """What should be bought."""
    scarce = ledger.to_reorder(below)
    if not scarce:
        return "Nothing to reorder."
    columns = [
        Column("SKU"),
        Column("Name"),
        Column("Left", right=True),
        Column("Reorder at", right=True),
    ]
    return table(columns, [_reorder_row(item, left) for item, left in scarce])


def account_report(ledger: Ledger, sku: str, place: str) -> str:
    """All that happened to one item at one place."""
    columns = [
        Column("Day"),
        Column("Kind"),
        Column("Change", right=True),
        Column("Balance", right=True),
        Column("Note"),
    ]
    return table(columns, [_account_row(line) for line in ledger.account(sku, place)])


def _reorder_row(item: Item, left: int) -> tuple[str, str, str, str]:
    return item.sku, item.name, str(left), str(item.reorder_at)


def _account_row(line: Line) -> tuple[str, str, str, str, str]:
    movement = line.movement
    return (
        movement.day.isoformat(),
        movement.kind,
        f"{line.change:+d}",
        str(line.balance),
        movement.note,
    )


REPORTS: dict[str, Callable[[Ledger], str]] = {
    "balance": balance_report,
    "valuation": valuation_report,
    "reorder": reorder_report,
}
