"""Tiers, discounts, rounding."""

import unittest
from decimal import Decimal

from stocktake.models import StockError
from stocktake.pricing import PriceList, round_amount

BOLT = "BLT-100"


class PriceListTest(unittest.TestCase):
    def setUp(self):
        self.prices = PriceList()
        self.prices.set_tiers(BOLT, {1: "0.20", 100: "0.15", 1000: "0.12"})

    def price(self, quantity):
        return str(self.prices.price_per_piece(BOLT, quantity))

    def test_the_first_tier(self):
        self.assertEqual(self.price(1), "0.20")
        self.assertEqual(self.price(99), "0.20")

    def test_a_tier_begins_at_its_own_quantity(self):
        self.assertEqual(self.price(100), "0.15")
        self.assertEqual(self.price(1000), "0.12")

    def test_beyond_the_last_tier(self):
        self.assertEqual(self.price(5000), "0.12")

    def test_nobody_buys_nothing(self):
        with self.assertRaises(StockError):
            self.price(0)

    def test_tiers_must_not_get_dearer(self):
        with self.assertRaises(StockError):
            self.prices.set_tiers(BOLT, {1: "0.20", 10: "0.25"})

    def test_a_quote_takes_the_best_discount(self):
        self.prices.add_discount("regular", "2")
        self.prices.add_discount("large", "5", minimum="100")
        quote = self.prices.quote([(BOLT, 1000)])
        self.assertEqual(quote.before_discount, Decimal("120.00"))
        self.assertEqual(quote.discount.name, "large")
        self.assertEqual(quote.total, Decimal("114.00"))

    def test_half_a_cent_goes_up(self):
        self.assertEqual(round_amount(Decimal("0.125")), Decimal("0.13"))


if __name__ == "__main__":
    unittest.main()
