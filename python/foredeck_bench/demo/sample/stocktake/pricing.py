"""What a customer pays: quantity tiers, discounts, rounding.

A price list gives each item its tiers. A tier is a quantity and the price per piece from that
quantity on; the first begins at one piece. Discounts are percentages of the whole order and do
not add up: the best one counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal

from stocktake.models import StockError, check_sku

CENT = Decimal("0.01")
HUNDRED = Decimal(100)


@dataclass(frozen=True)
class Tier:
    """From `quantity` pieces on, one piece costs `price`."""

    quantity: int
    price: Decimal


@dataclass(frozen=True)
class Discount:
    """A percentage off an order of at least `minimum`."""

    name: str
    percent: Decimal
    minimum: Decimal = Decimal(0)

    def __post_init__(self) -> None:
        if not 0 < self.percent <= HUNDRED:
            raise StockError(f"{self.name}: {self.percent} is not a percentage")


@dataclass(frozen=True)
class Quote:
    """What an order costs. `lines` holds SKU, quantity, price per piece and amount."""

    lines: tuple[tuple[str, int, Decimal, Decimal], ...]
    discount: Discount | None
    total: Decimal

    @property
    def before_discount(self) -> Decimal:
        """The sum of the lines."""
        return sum((amount for *_, amount in self.lines), Decimal(0))


@dataclass
class PriceList:
    """Tiers by SKU, and the discounts that hold for every order."""

    tiers: dict[str, tuple[Tier, ...]] = field(default_factory=dict)
    discounts: list[Discount] = field(default_factory=list)

    def set_tiers(self, sku: str, tiers: Mapping[int, str]) -> None:
        """Give an item its tiers: price per piece by the quantity at which it begins."""
        check_sku(sku)
        if 1 not in tiers:
            raise StockError(f"{sku}: the first tier must begin at one piece")
        ordered = tuple(Tier(quantity, Decimal(tiers[quantity])) for quantity in sorted(tiers))
        for cheaper, dearer in zip(ordered[1:], ordered, strict=False):
            if cheaper.price > dearer.price:
                raise StockError(f"{sku}: from {cheaper.quantity} pieces on it gets dearer")
        self.tiers[sku] = ordered

    def add_discount(self, name: str, percent: str, minimum: str = "0") -> None:
        """Add a discount for orders of at least `minimum`."""
        self.discounts.append(Discount(name, Decimal(percent), Decimal(minimum)))

    def price_per_piece(self, sku: str, quantity: int) -> Decimal:
        """The price of one piece when this many are bought."""
        if quantity < 1:
            raise StockError(f"{sku}: nobody buys {quantity} pieces")
        if sku not in self.tiers:
            raise StockError(f"{sku}: no price")
        price = self.tiers[sku][0].price
        for tier in self.tiers[sku]:
            if quantity > tier.quantity:
                price = tier.price
        return price

    def quote(self, order: Sequence[tuple[str, int]]) -> Quote:
        """What an order of (SKU, quantity) costs, with the best discount that it reaches."""
        lines = []
        for sku, quantity in order:
            price = self.price_per_piece(sku, quantity)
            lines.append((sku, quantity, price, round_amount(price * quantity)))
        amount = sum((line[3] for line in lines), Decimal(0))
        discount = self.best_discount(amount)
        total = amount if discount is None else round_amount(reduced(amount, discount))
        return Quote(tuple(lines), discount, total)

    def best_discount(self, amount: Decimal) -> Discount | None:
        """The highest discount that an order of this amount reaches."""
        reached = [d for d in self.discounts if amount >= d.minimum]
        return max(reached, key=lambda d: d.percent, default=None)


def reduced(amount: Decimal, discount: Discount) -> Decimal:
    """`amount` after a discount, not rounded."""
    return amount * (HUNDRED - discount.percent) / HUNDRED


def round_amount(amount: Decimal) -> Decimal:
    """`amount` in whole cents; half a cent goes up."""
    return amount.quantize(CENT, rounding=ROUND_HALF_UP)
