"""Tables, sorted and paged by address, as CSV or JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from foredeck.model.figures import lasted, money, short_count, when

Kind = Literal["text", "code", "count", "tokens", "money", "time", "took", "share"]
_NUMBERS = frozenset(("count", "tokens", "money", "took", "share"))
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Where a spreadsheet would see a formula."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """One column; `link`, `under` and `tags` name more of a row for its cells."""

    key: str
    label: str
    kind: Kind = "text"
    link: str = ""
    under: str = ""
    tags: str = ""

    @property
    def is_number(self) -> bool:
        """Whether its cells stand to the right."""
        return self.kind in _NUMBERS

    def words(self, row: Row) -> str:
        """What the page shows of a row, which `row["shown"]` may give."""
        if (shown := row.get("shown", {}).get(self.key)) is not None:
            return str(shown)
        value = row.get(self.key)
        if value is None or value == "":
            return ""
        match self.kind:
            case "money":
                return money(value)
            case "tokens":
                return short_count(value)
            case "count":
                return f"{value:,}"
            case "time":
                return when(value)[:16]
            case "took":
                return lasted(value)
            case "share":
                return f"{100 * value:.0f}%"
        return str(value)


@dataclass(slots=True)
class Table:
    """Rows under columns; `complete` adds what is slow to shown rows.

    By `NAME.sort` and `NAME.page` of the address.
    """

    name: str
    caption: str
    columns: Sequence[Column]
    rows: list[Row]
    per_page: int = 200
    complete: Callable[[list[Row]], None] = lambda _: None
    starts_at_end: bool = False
    """Whether the last page comes first, unsorted."""
    sort: str = ""
    page: int = 1
    shown: list[Row] = field(default_factory=list)

    def arranged(self, asked: Mapping[str, str]) -> Table:
        """The table, sorted and paged by an address."""
        self.columns = [each for each in self.columns if not self._is_empty(each)]
        wanted = asked.get(f"{self.name}.sort", "")
        if wanted.removeprefix("-") in {column.key for column in self.columns}:
            self.sort = wanted
            key, down = wanted.removeprefix("-"), wanted.startswith("-")
            there = [row for row in self.rows if row.get(key) not in (None, "")]
            there.sort(key=lambda row: _order(row[key]), reverse=down)
            # What is not known comes last both ways.
            self.rows = there + [row for row in self.rows if row.get(key) in (None, "")]
        page = asked.get(f"{self.name}.page", "")
        unasked = self.pages if self.starts_at_end and not self.sort else 1
        self.page = int(page) if page.isascii() and page.isdecimal() and len(page) < 7 else unasked
        self.page = max(1, min(self.page, self.pages))
        first = (self.page - 1) * self.per_page
        self.shown = self.rows[first : first + self.per_page]
        self.complete(self.shown)
        return self

    def _is_empty(self, column: Column) -> bool:
        return column.is_number and all(row.get(column.key) is None for row in self.rows)

    @property
    def pages(self) -> int:
        """How many pages it has."""
        return max(1, -(-len(self.rows) // self.per_page))

    def turned(self, column: Column) -> str:
        """The sort of a click: numbers from the highest."""
        first = f"-{column.key}" if column.is_number or column.kind == "time" else column.key
        second = column.key if first.startswith("-") else f"-{column.key}"
        return second if self.sort == first else first

    def direction(self, column: Column) -> str:
        """The direction of a column's sort, for ARIA."""
        if self.sort.removeprefix("-") != column.key:
            return ""
        return "descending" if self.sort.startswith("-") else "ascending"

    def to_json(self) -> list[Row]:
        """The rows of its page, for programs."""
        return [_plain(row) for row in self.shown]

    def all_rows(self) -> list[Row]:
        """All rows, for programs."""
        self.complete(self.rows)
        return [_plain(row) for row in self.rows]

    def to_csv(self) -> str:
        self.complete(self.rows)
        keys = [key for c in self.columns for key in (c.key, c.link, c.under) if key]
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\r\n")
        writer.writerow(keys)
        writer.writerows([_csv_value(row.get(key)) for key in keys] for row in self.rows)
        return file.getvalue()


def _order(value: Any) -> tuple[bool, Any]:
    return (isinstance(value, str), value.casefold() if isinstance(value, str) else value)


def _plain(row: Row) -> Row:
    return {key: value for key, value in row.items() if key != "shown"}


def _csv_value(value: Any) -> Any:
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
    # Names of files and what models said come from others.
    return f"'{text}" if isinstance(text, str) and text.startswith(_FORMULA) else text
