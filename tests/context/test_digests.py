"""Digests: one fact line by kind of output, then names that nothing else in view holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from foredeck.commands import ToolOutput, programs
from foredeck.context import digests
from foredeck.context.digests import KINDS, DigestSize, digest, unheld_names
from foredeck.model.names import identifiers

HERE = Path(__file__).parent
OUTPUTS = sorted([*HERE.glob("recorded/*.txt"), *HERE.glob("written/*.txt")])
"""Outputs, each behind its command or its tool: those of real commands as Pi's bash tool gives
them, and some that were written by hand."""

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
RUST = (
    "error[E0308]: mismatched types\n --> src/main.rs:4:18\n  |\n4 |     let x: u8 = y;\n"
    "error[E0425]: cannot find value\n --> src/main.rs:9:5\n"
    "error: could not compile `shop` due to 2 previous errors\n"
)
WIDE = DigestSize(chars=600, share=1.0)


@pytest.mark.parametrize("file", OUTPUTS, ids=lambda file: file.stem)
def test_an_output(file: Path, snapshot: SnapshotAssertion) -> None:
    first, _, text = file.read_text().partition("\n")
    tool = "bash" if first.startswith("$") else first
    arguments = {"command": first.removeprefix("$ "), "path": "a"}
    assert digest(tool, arguments, text.removesuffix("\n"), held=set(), size=WIDE) == snapshot


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cd /repo && git -C . log --oneline | head -3", {"git log"}),
        ("git log -3; git status", {"git log", "git status"}),
        ("FOO=1 timeout 30 /usr/bin/rg 'a && b' src", {"rg"}),
        ("# look\ngrep -rn x . || echo none", {"grep"}),
        ("cat > a.py <<'E'\nimport os; ls\nE", {"cat"}),
        ("", set()),
    ],
)
def test_the_programs_of_a_command(command: str, expected: set[str]) -> None:
    assert programs(command) == expected


def test_what_the_host_adds_is_not_the_output() -> None:
    read = "text\n\n[Showing lines 1-120 of 1549 (50.0KB limit). Use offset=121 to continue.]"
    assert ToolOutput.of(read) == ToolOutput("text")
    assert (
        ToolOutput.of("text\n\n[140 more lines in file. Use offset=121 to continue.]").body
        == "text"
    )
    cut = "text\n\n[Showing lines 9-20 of 20. Full output: /x/pi-bash-1.log]\n\n"
    assert ToolOutput.of(f"{cut}Command exited with code 2") == ToolOutput("text", 2)
    found = "a.ts:1: x\n\n[100 matches limit reached. Use limit=200 for more]"
    assert ToolOutput.of(found).body == "a.ts:1: x"
    assert ToolOutput.of("text\n\n[a line of its own]").body == "text\n\n[a line of its own]"


def test_how_much_and_when_is_no_name() -> None:
    text = "231 42ms 130ms 50.0KB 47.2it/s 14/398 0.000072 2.65e-13 2026-02-12T05:04:10.010Z"
    assert unheld_names(text, set(), 500) == ""
    assert unheld_names("24-bit 2E3440 6x6x6 1e1e2e N818", set(), 500) == "names: N818"


def test_of_many_names_in_a_long_text_its_beginning_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "first_name first_name a_name b_name " + "last_name " * 5
    assert unheld_names(text, set(), 500) == "names: last_name first_name a_name b_name"
    monkeypatch.setattr(digests, "COUNTED_CHARS", 4 * 25)
    assert unheld_names(text, set(), 500) == "names: first_name a_name b_name last_name"


def test_a_path_begins_as_it_does_in_the_text() -> None:
    text = "./src/a.ts ../doc/b.ts /usr/lib .github/x.yml ~/cc/dd https://e.org/f lib/src/g"
    told = unheld_names(text, set(), 500)
    assert set(told.split()[1:]) == {
        *("~/cc/dd", "e.org/f", "/usr/lib", "../doc/b.ts", "src/a.ts", "lib/src/g"),
        ".github/x.yml",
    }


def test_only_facts_that_fit_are_given() -> None:
    facts = digest("bash", {"command": "cargo build"}, RUST, held=set(), size=DigestSize(70, 1.0))
    assert facts == " error: could not compile `shop` due to 2 previous errors\nnames: E0308"
    assert digest("read", {}, CODE, held=set(), size=DigestSize(40, 1.0)) == (
        " defines: ReadRange, parse_range, ..."
    )


@given(st.text(max_size=3000), st.sampled_from([*KINDS, "other"]), st.integers(0, 300))
def test_a_digest_fits_its_room_and_says_the_same_twice(text: str, tool: str, chars: int) -> None:
    size = DigestSize(chars, 0.15)
    told = digest(tool, {}, text, held=set(), size=size)
    assert len(told) <= size.limit(text)
    assert told == digest(tool, {}, text, held=set(), size=size)
    assert identifiers(told.partition("names:")[2]) <= identifiers(text)
