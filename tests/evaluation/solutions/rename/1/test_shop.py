import unittest

from shop.orders import can_deliver
from shop.report import low
from shop.stock import count_of


class Shop(unittest.TestCase):
    def test_all(self):
        stock = {"nut": 4, "bolt": 1}
        self.assertEqual(count_of(stock, "nut"), 4)
        self.assertTrue(can_deliver(stock, {"nut": 2}))
        self.assertEqual(low(stock, ["nut", "bolt"]), ["bolt"])
