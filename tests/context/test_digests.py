"""Digests: one fact line by kind of output, then names that nothing else in view holds."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foredeck.context.digests import KINDS, Size, digest
from foredeck.context.digests.names import unheld_names
from foredeck.context.messages.identifiers import identifiers

CODE = (
    """import os

class ReadRange:
    def parse_range(self, text):
        return os.environ["FOREDECK_HOME"], 4096

async def load_all():
    ...
"""
    + "# padding\n" * 40
)
MARKDOWN = "# Title of it\n\ntext\n\n## First part\n\n### Deeper\n" + "prose only\n" * 40
GREP = "".join(f"src/a.ts:{n}: const x = {n};\n" for n in range(1, 9)) + "src/b.ts:3: y\n" * 3
PYTEST = (
    "FAILED tests/test_a.py::test_one - AssertionError: no\n"
    + "....\n" * 60
    + "===== 1 failed, 12 passed in 3.21s =====\n\nCommand exited with code 1"
)
TSC = "src/x.ts(3,5): error TS2322: Type 'string' is not assignable.\n" + "more output\n" * 40
VITEST = " ✗ renders the list\n" + "noise\n" * 60 + " Tests  1 failed | 9 passed (10)\n"
GO = "--- FAIL: TestOpen (0.00s)\n" + "    open_test.go:12: bad\n" * 20 + "FAIL\tauth/open\t0.01s\n"
WIDE = Size(chars=600, share=1.0)


@pytest.mark.parametrize(
    ("tool", "arguments", "text", "expected"),
    [
        ("read", {"path": "a.py"}, CODE, "defines: ReadRange, parse_range, load_all"),
        ("read", {"path": "a.md"}, MARKDOWN, "headings: Title of it, First part, Deeper"),
        ("read", {"path": "a.txt"}, "plain words only\n" * 50, ""),
        ("grep", {"pattern": "x"}, GREP, "11 hits in 2 files: src/a.ts 8, src/b.ts 3"),
        ("find", {"pattern": "*"}, "one\ntwo\nthree\n", "3 entries"),
        (
            "bash",
            {"command": "pytest"},
            PYTEST,
            "exit code 1; 1 failed, 12 passed in 3.21s; "
            "FAILED tests/test_a.py::test_one - AssertionError: no",
        ),
        (
            "bash",
            {"command": "tsc"},
            TSC,
            "src/x.ts(3,5): error TS2322: Type 'string' is not assignable.",
        ),
        ("bash", {}, VITEST, "Tests 1 failed | 9 passed (10); ✗ renders the list"),
        ("bash", {}, GO, "FAIL auth/open 0.01s; --- FAIL: TestOpen (0.00s)"),
        ("bash", {}, "nothing to tell\n" * 40, ""),
    ],
)
def test_facts_by_kind(tool: str, arguments: dict[str, Any], text: str, expected: str) -> None:
    assert KINDS[tool](arguments, text) == expected


def test_names_that_are_held_elsewhere_are_left_out_and_short_ones_come_first() -> None:
    text = "src/long/path_one.ts make_b make_a 4096 FOREDECK_HOME"
    assert unheld_names(text, {"make_b"}, 200) == (
        "names: make_a FOREDECK_HOME src/long/path_one.ts"
    )
    assert unheld_names(text, set(), 20) == "names: make_a make_b"
    assert unheld_names("only words", set(), 200) == ""
    assert unheld_names("4096 of 8192", set(), 200) == "names: 4096 8192"


def test_a_digest_is_a_fact_line_and_names() -> None:
    told = digest("read", {"path": "a.py"}, CODE, held={"ReadRange"}, size=WIDE)
    assert told == ("defines: ReadRange, parse_range, load_all\nnames: os.environ FOREDECK_HOME")
    assert digest("read", {}, CODE, held=set(), size=Size(chars=0)) == ""


@given(st.text(max_size=3000), st.sampled_from([*KINDS, "other"]), st.integers(0, 300))
def test_a_digest_fits_its_room_and_says_the_same_twice(text: str, tool: str, chars: int) -> None:
    size = Size(chars, 0.15)
    told = digest(tool, {}, text, held=set(), size=size)
    assert len(told) <= size.limit(text)
    assert told == digest(tool, {}, text, held=set(), size=size)
    names = re.findall(r"\S+", told.partition("names:")[2])
    assert set(names) <= identifiers(text)
