import unittest

from shop.orders import can_deliver
from shop.report import low
from shop.stock import get_cnt


class Shop(unittest.TestCase):
    def test_all(self):
        stock = {"nut": 4, "bolt": 1}
        self.assertEqual(get_cnt(stock, "nut"), 4)
        self.assertTrue(can_deliver(stock, {"nut": 2}))
        self.assertEqual(low(stock, ["nut", "bolt"]), ["bolt"])
