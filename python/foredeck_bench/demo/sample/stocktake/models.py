"""Items, movements, and what may stand in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

SKU_PATTERN = re.compile(r"[A-Z]{2,4}-\d{3,6}")
KINDS = ("receive", "ship", "adjust", "transfer")


class StockError(Exception):
    """Something that the books cannot hold; the text is fit for the user."""


class UnknownItem(StockError):
    """A movement names an item that nobody described."""


class NotEnoughStock(StockError):
    """More was to leave a place than is there."""

    def __init__(self, sku: str, place: str, wanted: int, available: int) -> None:
        super().__init__(f"{sku}: {wanted} were to leave {place}, but only {available} are there")
        self.sku = sku
        self.place = place
        self.wanted = wanted
        self.available = available


@dataclass(frozen=True)
class Item:
    """One thing that can be in stock.

    `unit_cost` is what one piece costs when nothing else is known, `reorder_at` the quantity at
    which more should be bought.
    """

    sku: str
    name: str
    unit_cost: Decimal = Decimal("0")
    reorder_at: int = 0

    def __post_init__(self) -> None:
        check_sku(self.sku)
        if not self.name.strip():
            raise StockError(f"{self.sku}: an item needs a name")
        if self.unit_cost < 0:
            raise StockError(f"{self.sku}: the unit cost cannot be negative")
        if self.reorder_at < 0:
            raise StockError(f"{self.sku}: the reorder quantity cannot be negative")


@dataclass(frozen=True)
class Movement:
    """One change of the stock.

    `kind` is one of KINDS. `quantity` is positive for everything but `adjust`, which may count
    down as well as up. `to_place` is set for transfers only. `unit_cost` is what a piece cost on
    receipt; None means the item's own.
    """

    day: date
    kind: str
    sku: str
    quantity: int
    place: str
    to_place: str | None = None
    unit_cost: Decimal | None = None
    note: str = ""

    def __post_init__(self) -> None:
        check_sku(self.sku)
        if self.kind not in KINDS:
            raise StockError(f"{self.sku}: {self.kind!r} is none of {', '.join(KINDS)}")
        self._check_quantity()
        self._check_places()
        if self.unit_cost is not None and self.kind != "receive":
            raise StockError(f"{self.sku}: only a receipt has a unit cost")

    def _check_quantity(self) -> None:
        if self.quantity == 0:
            raise StockError(f"{self.sku}: a movement of nothing")
        if self.quantity < 0 and self.kind != "adjust":
            raise StockError(f"{self.sku}: the quantity of a {self.kind} must be positive")

    def _check_places(self) -> None:
        if not self.place.strip():
            raise StockError(f"{self.sku}: a movement needs a place")
        if self.kind == "transfer":
            if not self.to_place:
                raise StockError(f"{self.sku}: a transfer needs a place to go to")
            if self.to_place == self.place:
                raise StockError(f"{self.sku}: a transfer within {self.place}")
        elif self.to_place is not None:
            raise StockError(f"{self.sku}: only a transfer has a place to go to")

    @property
    def leaves(self) -> int:
        """Pieces that leave `place`; 0 where some arrive."""
        if self.kind in ("ship", "transfer"):
            return self.quantity
        return max(0, -self.quantity)

    @property
    def arrives(self) -> int:
        """Pieces that arrive at `place`, or at `to_place` for a transfer."""
        if self.kind == "ship":
            return 0
        return max(0, self.quantity)


def check_sku(sku: str) -> None:
    """Raise StockError unless `sku` looks like `AB-123`."""
    if not SKU_PATTERN.fullmatch(sku):
        raise StockError(f"{sku!r} is not a SKU: two to four letters, a dash, three to six digits")
