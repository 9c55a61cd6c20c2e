import json
import subprocess
import unittest


def run(*options):
    with open("told.txt", "w") as file:
        file.write("b a b c b a")
    command = ["python3", "words.py", "told.txt", *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Options(unittest.TestCase):
    def test_plain(self):
        self.assertEqual(run(), "3\tb\n2\ta\n1\tc\n")

    def test_top(self):
        self.assertEqual(run("--top", "2"), "3\tb\n2\ta\n")

    def test_json(self):
        self.assertEqual(json.loads(run("--json")), {"b": 3, "a": 2, "c": 1})

    def test_both(self):
        self.assertEqual(json.loads(run("--json", "--top", "1")), {"b": 3})
