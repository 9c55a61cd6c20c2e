"""Writes tools/ and test_tools.py: 24 modules with one mistake in each."""

from pathlib import Path

KINDS = (
    ("chunks", "values: list, size: int = {n}", "The values in lists of `size`, the last may be shorter.",
     "return [values[at : at + size] for at in range(0, len(values) - 1, size)]",
     "list(range({n} + 1)), {n}", "[list(range({n})), [{n}]]"),
    ("clamp", "value: int, low: int = 0, high: int = {n}", "The value, but at least `low` and at most `high`.",
     "return min(low, max(high, value))", "{n} + 5", "{n}"),
    ("mean", "values: list", "The mean of the values; 0 for none.",
     "return sum(values) / len(values)", "[]", "0"),
    ("merged", "one: dict, other: dict", "Both, where `other` goes first; neither is changed.",
     "one.update(other)\n    return other", "{{1: 2}}, {{3: {n}}}", "{{1: 2, 3: {n}}}"),
    ("common", "one: str, other: str", "With how many equal characters both begin.",
     "return sum(a == b for a, b in zip(one, other))", "'ab-{n}', 'ac-{n}'", "1"),
    ("parsed", "text: str", "Numbers out of `1,2,,3`; empty places are left out.",
     "return [int(part) for part in text.split(',')]", "'{n},,4,'", "[{n}, 4]"),
    ("slug", "text: str", "Lower case, with one dash between words.",
     "return text.lower().replace(' ', '-')", "' Big   {n} '", "'big-{n}'"),
    ("roman", "number: int", "The number in Roman digits, up to 39.",
     "return 'X' * (number // 10) + 'I' * (number % 10)", "14", "'XIV'"),
)
FILLER = '''

def {name}_{at}(values: list[int]) -> list[int]:
    """Those of the values that step {at} of {name} lets pass, none of them twice."""
    seen, found = set(), []
    for value in values:
        if value % {step} != {rest} and value not in seen:
            found.append(value * {weight})
        seen.add(value)
    return found
'''

tools = Path("tools")
tools.mkdir()
(tools / "__init__.py").write_text("")
tests = "import unittest\nfrom importlib import import_module\n\n\nclass Tools(unittest.TestCase):\n"
for number in range(24):
    kind, parameters, said, body, given, wanted = (part.format(n=number + 3) for part in KINDS[number % 8])
    name = f"{kind}_{'abc'[number // 8]}"
    text = f'"""Part of the tools: {name}."""\n'
    for at in range(16):
        text += FILLER.format(name=name, at=at, step=at + 2, rest=number % (at + 2), weight=at + 1)
        if at == 7 + number % 5:
            text += f'\n\ndef {kind}({parameters}):\n    """{said}"""\n    {body}\n'
    (tools / f"{name}.py").write_text(text)
    tests += f"    def test_{name}(self):\n        {kind} = import_module('tools.{name}').{kind}\n"
    tests += f"        self.assertEqual({kind}({given}), {wanted})\n\n"
Path("test_tools.py").write_text(tests)
