"""Balances, and what a ledger refuses."""

import unittest
from datetime import date

from stocktake import Item, Ledger, Movement, StockError
from stocktake.models import NotEnoughStock, UnknownItem

BOLT = "BLT-100"


def received(quantity, day=1, place="main"):
    return Movement(date(2025, 3, day), "receive", BOLT, quantity, place)


def shipped(quantity, day=2, place="main"):
    return Movement(date(2025, 3, day), "ship", BOLT, quantity, place)


class LedgerTest(unittest.TestCase):
    def setUp(self):
        self.ledger = Ledger({BOLT: Item(BOLT, "Bolt M6", reorder_at=20)})

    def test_what_comes_in_and_goes_out(self):
        self.assertEqual(self.ledger.post_all([shipped(20), received(50)]), 2)
        self.assertEqual(self.ledger.on_hand(BOLT), 30)

    def test_more_than_there_is_cannot_leave(self):
        self.ledger.post(received(5))
        with self.assertRaises(NotEnoughStock) as caught:
            self.ledger.post(shipped(6))
        self.assertEqual(caught.exception.available, 5)
        self.assertEqual(self.ledger.on_hand(BOLT), 5)

    def test_an_unknown_item_is_refused(self):
        with self.assertRaises(UnknownItem):
            self.ledger.post(Movement(date(2025, 3, 1), "receive", "NUT-100", 1, "main"))

    def test_time_goes_forward(self):
        self.ledger.post(received(5, day=3))
        with self.assertRaises(StockError):
            self.ledger.post(received(5, day=2))

    def test_a_transfer_moves_between_places(self):
        self.ledger.post(received(10))
        move = Movement(date(2025, 3, 2), "transfer", BOLT, 4, "main", "shop")
        self.ledger.post(move)
        self.assertEqual(list(self.ledger.balances()), [(BOLT, "main", 6), (BOLT, "shop", 4)])
        self.assertEqual(self.ledger.places(), ["main", "shop"])

    def test_the_balance_of_a_past_day(self):
        self.ledger.post_all([received(10, day=1), shipped(4, day=5), shipped(1, day=9)])
        asked = [self.ledger.balance_on(date(2025, 3, day), BOLT, "main") for day in (1, 4, 5, 9)]
        self.assertEqual(asked, [10, 10, 6, 5])

    def test_what_to_reorder(self):
        self.ledger.post(received(19))
        self.assertEqual([left for _, left in self.ledger.to_reorder()], [19])
        self.assertEqual(self.ledger.to_reorder(below=10), [])

    def test_what_nobody_ships(self):
        self.ledger.post_all([received(10), shipped(1, day=2)])
        self.assertEqual(self.ledger.idle_since(date(2025, 3, 2)), [])
        self.assertEqual(self.ledger.idle_since(date(2025, 3, 3)), [BOLT])


if __name__ == "__main__":
    unittest.main()
