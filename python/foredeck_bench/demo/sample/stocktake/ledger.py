"""The running balance per item and place.

A ledger takes movements in the order of their days and refuses what cannot have happened: more
leaving a place than is there, or an item that nobody described. It keeps every movement, so that
any balance can be explained and any day of the past can be asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from stocktake.models import Item, Movement, NotEnoughStock, StockError, UnknownItem

Key = tuple[str, str]


@dataclass(frozen=True)
class Line:
    """One line of an account: a movement and the balance after it."""

    movement: Movement
    change: int
    balance: int


class Ledger:
    """Balances by SKU and place.

    ledger = Ledger({"AB-100": Item("AB-100", "Bolt")})
    ledger.post(Movement(date(2025, 3, 1), "receive", "AB-100", 50, "main"))
    ledger.on_hand("AB-100")   # 50
    """

    def __init__(self, items: Mapping[str, Item], *, strict: bool = True) -> None:
        self._items = dict(items)
        self._strict = strict
        self._balances: defaultdict[Key, int] = defaultdict(int)
        self._accounts: defaultdict[Key, list[Line]] = defaultdict(list)
        self._movements: list[Movement] = []

    # ------------------------------------------------------------ posting

    def post(self, movement: Movement) -> None:
        """Enter one movement.

        Raises UnknownItem, NotEnoughStock, or StockError for a day before the last one posted.
        Nothing is entered when it raises.
        """
        self._check(movement)
        if movement.leaves:
            self._enter(movement, movement.place, -movement.leaves)
        if movement.arrives:
            self._enter(movement, movement.to_place or movement.place, movement.arrives)
        self._movements.append(movement)

    def post_all(self, movements: Iterable[Movement]) -> int:
        """Enter movements sorted by day; those of one day keep their order. Returns how many."""
        count = 0
        for movement in sorted(movements, key=lambda m: m.day):
            self.post(movement)
            count += 1
        return count

    def _check(self, movement: Movement) -> None:
        if movement.sku not in self._items:
            if self._strict:
                raise UnknownItem(f"{movement.sku}: no such item")
            self._items[movement.sku] = Item(movement.sku, movement.sku)
        if self._movements and movement.day < self._movements[-1].day:
            raise StockError(f"{movement.sku}: {movement.day} is before {self._movements[-1].day}")
        available = self._balances[movement.sku, movement.place]
        if movement.leaves > available:
            raise NotEnoughStock(movement.sku, movement.place, movement.leaves, available)

    def _enter(self, movement: Movement, place: str, change: int) -> None:
        key = (movement.sku, place)
        self._balances[key] += change
        self._accounts[key].append(Line(movement, change, self._balances[key]))

    # ------------------------------------------------------------ asking

    @property
    def items(self) -> dict[str, Item]:
        """All items by SKU, those never moved included."""
        return dict(self._items)

    @property
    def movements(self) -> tuple[Movement, ...]:
        """Everything that was posted, oldest first."""
        return tuple(self._movements)

    def places(self) -> list[str]:
        """Names of all places that ever held something, sorted."""
        return sorted({place for _, place in self._accounts})

    def on_hand(self, sku: str, place: str | None = None) -> int:
        """Pieces at one place, or everywhere."""
        if place is not None:
            return self._balances[sku, place]
        return sum(count for (found, _), count in self._balances.items() if found == sku)

    def account(self, sku: str, place: str) -> list[Line]:
        """All lines of one item at one place, oldest first."""
        return list(self._accounts[sku, place])

    def balance_on(self, day: date, sku: str, place: str) -> int:
        """The balance at the end of a day."""
        balance = 0
        for line in self._accounts[sku, place]:
            if line.movement.day > day:
                break
            balance = line.balance
        return balance

    def balances(self) -> Iterator[tuple[str, str, int]]:
        """SKU, place and quantity of everything that is not zero, sorted."""
        for (sku, place), count in sorted(self._balances.items()):
            if count:
                yield sku, place, count

    def to_reorder(self, below: int | None = None) -> list[tuple[Item, int]]:
        """Items of which too little is left, with what is left, scarcest first.

        Too little is less than `below`, or than the item's own `reorder_at`.
        """
        scarce = []
        for item in self._items.values():
            left = self.on_hand(item.sku)
            limit = item.reorder_at if below is None else below
            if left < limit:
                scarce.append((item, left))
        return sorted(scarce, key=lambda pair: (pair[1], pair[0].sku))

    def idle_since(self, day: date) -> list[str]:
        """SKUs in stock that nobody has shipped since `day`, sorted."""
        shipped = {m.sku for m in self._movements if m.kind == "ship" and m.day >= day}
        return sorted({sku for sku, _, _ in self.balances()} - shipped)
