"""Movements and items from CSV files, with line numbers in every complaint."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path

from stocktake.models import Item, Movement, StockError

MOVEMENT_COLUMNS = ("day", "kind", "sku", "quantity", "place", "to_place", "unit_cost", "note")
ITEM_COLUMNS = ("sku", "name", "unit_cost", "reorder_at")


class ParseError(StockError):
    """A line that cannot be read."""

    def __init__(self, source: str, line: int, reason: str) -> None:
        super().__init__(f"{source}:{line}: {reason}")
        self.source = source
        self.line = line


def read_movements(path: Path) -> list[Movement]:
    """All movements of a CSV file, in its order."""
    with path.open(encoding="utf-8", newline="") as lines:
        return list(parse_movements(lines, path.name))


def read_items(path: Path) -> dict[str, Item]:
    """Items of a CSV file by SKU. A SKU that comes twice is an error."""
    with path.open(encoding="utf-8", newline="") as lines:
        return parse_items(lines, path.name)


def parse_movements(lines: Iterable[str], source: str = "input") -> Iterator[Movement]:
    """Movements from CSV lines; the first line names the columns."""
    for number, row in _rows(lines, source, MOVEMENT_COLUMNS):
        try:
            yield _movement(row)
        except StockError as error:
            raise ParseError(source, number, str(error)) from error


def parse_items(lines: Iterable[str], source: str = "input") -> dict[str, Item]:
    """Items by SKU from CSV lines; the first line names the columns."""
    items: dict[str, Item] = {}
    for number, row in _rows(lines, source, ITEM_COLUMNS):
        try:
            item = _item(row)
        except StockError as error:
            raise ParseError(source, number, str(error)) from error
        if item.sku in items:
            raise ParseError(source, number, f"{item.sku} stands in the file twice")
        items[item.sku] = item
    return items


def _rows(
    lines: Iterable[str], source: str, columns: tuple[str, ...]
) -> Iterator[tuple[int, dict[str, str]]]:
    reader = csv.DictReader(lines)
    unknown = [name for name in reader.fieldnames or () if name not in columns]
    if unknown:
        raise ParseError(source, 1, f"unknown columns: {', '.join(unknown)}")
    for row in reader:
        if None in row:
            raise ParseError(source, reader.line_num, "more fields than columns")
        yield reader.line_num, {key: (value or "").strip() for key, value in row.items()}


def _movement(row: dict[str, str]) -> Movement:
    return Movement(
        day=_day(row.get("day", "")),
        kind=row.get("kind", ""),
        sku=row.get("sku", ""),
        quantity=_integer(row.get("quantity", ""), "quantity"),
        place=row.get("place", ""),
        to_place=row.get("to_place") or None,
        unit_cost=_optional_amount(row.get("unit_cost", ""), "unit_cost"),
        note=row.get("note", ""),
    )


def _item(row: dict[str, str]) -> Item:
    return Item(
        sku=row.get("sku", ""),
        name=row.get("name", ""),
        unit_cost=_optional_amount(row.get("unit_cost", ""), "unit_cost") or Decimal("0"),
        reorder_at=_integer(row.get("reorder_at") or "0", "reorder_at"),
    )


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise StockError(f"{text!r} is not a day like 2025-03-31") from None


def _integer(text: str, column: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise StockError(f"{column}: {text!r} is not a whole number") from None


def _optional_amount(text: str, column: str) -> Decimal | None:
    if not text:
        return None
    try:
        amount = Decimal(text)
    except InvalidOperation:
        raise StockError(f"{column}: {text!r} is not an amount") from None
    if not amount.is_finite():
        raise StockError(f"{column}: {text!r} is not an amount")
    return amount
