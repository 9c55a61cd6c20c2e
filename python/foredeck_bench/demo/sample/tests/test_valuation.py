"""Both ways to value the stock, and the tables."""

import unittest
from datetime import date
from decimal import Decimal
from pathlib import Path

from stocktake import Item, Ledger, Movement, StockError
from stocktake.cli import load
from stocktake.report import Column, balance_report, table, valuation_report
from stocktake.valuation import total, valuation

BOLT = "BLT-100"
DATA = Path(__file__).parent.parent / "data"


class ValuationTest(unittest.TestCase):
    def setUp(self):
        self.ledger = Ledger({BOLT: Item(BOLT, "Bolt M6", unit_cost=Decimal("0.10"))})
        receive = Movement(date(2025, 3, 1), "receive", BOLT, 10, "main", unit_cost=Decimal("1"))
        again = Movement(date(2025, 3, 2), "receive", BOLT, 10, "main", unit_cost=Decimal("2"))
        ship = Movement(date(2025, 3, 3), "ship", BOLT, 5, "main")
        self.ledger.post_all([receive, again, ship])

    def test_first_in_first_out(self):
        self.assertEqual(valuation(self.ledger)[BOLT], Decimal("25.00"))

    def test_average(self):
        self.assertEqual(valuation(self.ledger, "average")[BOLT], Decimal("22.50"))

    def test_an_unknown_method_is_refused(self):
        with self.assertRaises(StockError):
            valuation(self.ledger, "last")

    def test_a_found_piece_has_the_items_own_cost(self):
        self.ledger.post(Movement(date(2025, 3, 4), "adjust", BOLT, 1, "main"))
        self.assertEqual(valuation(self.ledger)[BOLT], Decimal("25.10"))

    def test_the_total(self):
        self.assertEqual(total([Decimal("1.005"), Decimal("2")]), Decimal("3.01"))


class ReportTest(unittest.TestCase):
    def test_cells_are_aligned(self):
        text = table([Column("Name"), Column("N", right=True)], [("a", "1"), ("bb", "10")])
        self.assertEqual(text.split("\n"), ["Name   N", "----  --", "a      1", "bb    10"])

    def test_the_sample_data_has_a_balance(self):
        text = balance_report(load(DATA / "movements.csv", None))
        self.assertIn("BLT-100  Bolt M6        shop      450", text)

    def test_the_sample_data_has_a_value(self):
        text = valuation_report(load(DATA / "movements.csv", None))
        self.assertTrue(text.split("\n")[-1].strip().startswith("all"))


if __name__ == "__main__":
    unittest.main()
