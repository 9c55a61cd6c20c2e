import copy
import unittest

from settings import merge


class Merge(unittest.TestCase):
    def test_cases(self):
        for lower, upper, wanted in (
            ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
            ({"a": 1}, {"a": 2}, {"a": 2}),
            ({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}}, {"a": {"b": 1, "c": 3}}),
            ({"a": [1, 2]}, {"a": [2, 3, 3]}, {"a": [1, 2, 3]}),
            ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
            ({}, {"a": None, "b": {"c": None, "d": 1}}, {"b": {"d": 1}}),
            ({"a": {"b": 1}}, {"a": {"b": None}}, {"a": {}}),
            ({"a": {"b": 1}}, {"a": 5}, {"a": 5}),
        ):
            before = copy.deepcopy((lower, upper))
            self.assertEqual(merge(lower, upper), wanted)
            self.assertEqual((lower, upper), before)

    def test_what_is_merged_is_a_copy(self):
        lower = {"a": {"b": [1]}}
        merge(lower, {})["a"]["b"].append(2)
        self.assertEqual(lower, {"a": {"b": [1]}})
