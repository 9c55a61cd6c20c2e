import unittest

import roman


class Both(unittest.TestCase):
    def test_to_number(self):
        self.assertEqual([roman.to_number(t) for t in ("IV", "XIV", "MCMXC")], [4, 14, 1990])

    def test_there_and_back(self):
        for number in range(1, 4000):
            self.assertEqual(roman.to_number(roman.to_roman(number)), number)

    def test_what_was_asked_for_at_first(self):
        for number in (0, 4000):
            with self.assertRaisesRegex(ValueError, "roman numbers go from 1 to 3999"):
                roman.to_roman(number)
        with open("roman.py") as file:
            self.assertNotRegex(file.read(), "\\bf[\"\']")
