import unittest

import pricing


class Prices(unittest.TestCase):
    def test_one_piece(self):
        self.assertEqual(pricing.unit_price(1), 500)

    def test_a_tier_begins_at_its_own_quantity(self):
        self.assertEqual(pricing.unit_price(10), 450)
        self.assertEqual(pricing.unit_price(100), 400)

    def test_total(self):
        self.assertEqual(pricing.total(9), 4500)
