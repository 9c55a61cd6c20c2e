import ast
import unittest

import geometry
import shapes


class Split(unittest.TestCase):
    def test_classes_are_defined_in_shapes_alone(self):
        with open("geometry.py") as file:
            tree = ast.parse(file.read())
        self.assertFalse([node for node in tree.body if isinstance(node, ast.ClassDef)])
        self.assertEqual(shapes.Circle.__module__, "shapes")

    def test_imports_of_before(self):
        self.assertIs(geometry.Circle, shapes.Circle)
        self.assertIs(geometry.Box, shapes.Box)
        self.assertEqual(geometry.parse("box 2 3").area(), 6)
        self.assertEqual(geometry.parse("circle 2").area(), 12)
        self.assertRaises(ValueError, geometry.parse, "cone 1")
