import unittest

from bounds import clamp, share


class Bounds(unittest.TestCase):
    def test_clamp(self):
        self.assertEqual([clamp(v, 1, 3) for v in (0, 1, 2, 3, 4)], [1, 1, 2, 3, 3])

    def test_low_and_high_may_be_equal(self):
        self.assertEqual(clamp(5, 2, 2), 2)

    def test_low_above_high(self):
        with self.assertRaises(ValueError):
            clamp(1, 3, 2)

    def test_share(self):
        self.assertEqual(share(1, 4), 25)

    def test_share_is_rounded_down(self):
        self.assertEqual(share(2, 3), 66)

    def test_share_of_nothing(self):
        self.assertEqual((share(0, 0), share(3, 0)), (0, 0))
