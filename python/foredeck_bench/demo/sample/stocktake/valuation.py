"""What the stock is worth.

Two methods, each fed with the ledger's movements in order:

- first in, first out: what was received first leaves first, so what is left cost what the last
  receipts cost;
- average: every receipt changes the average cost of a piece, and every departure leaves it.

Transfers do not change a value: they move pieces between places, not out of the house.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from stocktake.ledger import Ledger
from stocktake.models import Item, Movement, StockError
from stocktake.pricing import round_amount


@dataclass
class Layer:
    """Pieces of one receipt that are still there."""

    quantity: int
    unit_cost: Decimal

    @property
    def value(self) -> Decimal:
        """What the layer cost."""
        return self.quantity * self.unit_cost


class FirstInFirstOut:
    """The layers of one item, oldest first."""

    def __init__(self) -> None:
        self._layers: deque[Layer] = deque()

    def receive(self, quantity: int, unit_cost: Decimal) -> None:
        """Put a receipt behind the others."""
        self._layers.append(Layer(quantity, unit_cost))

    def leave(self, quantity: int) -> Decimal:
        """Take pieces from the oldest layers; returns what they cost."""
        cost = Decimal(0)
        while quantity:
            if not self._layers:
                raise StockError("more left than was received")
            layer = self._layers[0]
            taken = min(quantity, layer.quantity)
            cost += taken * layer.unit_cost
            layer.quantity -= taken
            quantity -= taken
            if not layer.quantity:
                self._layers.popleft()
        return cost

    @property
    def value(self) -> Decimal:
        """What the pieces that are left cost."""
        return sum((layer.value for layer in self._layers), Decimal(0))


class AverageCost:
    """Quantity and value of one item; a piece costs their quotient."""

    def __init__(self) -> None:
        self._quantity = 0
        self._value = Decimal(0)

    def receive(self, quantity: int, unit_cost: Decimal) -> None:
        """Add a receipt to the average."""
        self._quantity += quantity
        self._value += quantity * unit_cost

    def leave(self, quantity: int) -> Decimal:
        """Take pieces at the average cost; returns what they cost."""
        if quantity > self._quantity:
            raise StockError("more left than was received")
        cost = self._value * quantity / self._quantity
        self._quantity -= quantity
        self._value -= cost
        return cost

    @property
    def value(self) -> Decimal:
        """What the pieces that are left cost."""
        return self._value


Method = FirstInFirstOut | AverageCost
METHODS: dict[str, type[Method]] = {"fifo": FirstInFirstOut, "average": AverageCost}


def valuation(ledger: Ledger, method: str = "fifo") -> dict[str, Decimal]:
    """The value of each item in stock by SKU, in whole cents."""
    if method not in METHODS:
        raise StockError(f"{method!r} is none of {', '.join(METHODS)}")
    books: dict[str, Method] = {}
    for movement in ledger.movements:
        book = books.setdefault(movement.sku, METHODS[method]())
        _apply(book, movement, ledger.items[movement.sku])
    return {sku: round_amount(book.value) for sku, book in sorted(books.items())}


def total(values: Iterable[Decimal]) -> Decimal:
    """The sum of values, in whole cents."""
    return round_amount(sum(values, Decimal(0)))


def _apply(book: Method, movement: Movement, item: Item) -> None:
    if movement.kind == "transfer":
        return
    if movement.leaves:
        book.leave(movement.leaves)
    if movement.arrives:
        cost = item.unit_cost if movement.unit_cost is None else movement.unit_cost
        book.receive(movement.arrives, cost)
