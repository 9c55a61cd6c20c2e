import unittest
from importlib import import_module
from pathlib import Path

CASES = {
    "chunks": [(([1, 2, 3], 2), [[1, 2], [3]]), (([1], 1), [[1]]), (([], 2), [])],
    "clamp": [((-1,), 0), ((2,), 2), ((99, 1, 7), 7)],
    "mean": [(([],), 0), (([1, 3],), 2)],
    "merged": [(({1: 1}, {1: 2}), {1: 2}), (({1: 1}, {}), {1: 1})],
    "common": [(("", "a"), 0), (("abc", "abd"), 2), (("xa", "ya"), 0)],
    "parsed": [(("",), []), (("1,2,,3",), [1, 2, 3])],
    "slug": [(("A  b",), "a-b"), (("x",), "x")],
    "roman": [((4,), "IV"), ((9,), "IX"), ((39,), "XXXIX"), ((16,), "XVI")],
}


class All(unittest.TestCase):
    def test_all(self):
        fixes = Path("FIXES.md").read_text()
        for kind, cases in CASES.items():
            for letter in "abc":
                function = getattr(import_module(f"tools.{kind}_{letter}"), kind)
                for given, wanted in cases:
                    self.assertEqual(function(*given), wanted, f"{kind}_{letter}")
                self.assertIn(f"{kind}_{letter}", fixes)
        one, other = {1: 1}, {2: 2}
        import_module("tools.merged_b").merged(one, other)
        self.assertEqual((one, other), ({1: 1}, {2: 2}))
