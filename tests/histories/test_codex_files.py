"""Versions of files by Codex's commands and patches: what they show, what they write, and what a
patch says of the text before it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_codex import item, meta, output, said
from test_files import Version, versions
from written_histories import write_lines

from commands import Foredeck
from foredeck.store.store import Store
from foredeck_agents.histories.ingesting import ingest_files
from foredeck_agents.histories.tools import patched, patches_in, unpatched

ROLLOUT = "0199c0de-0000-7000-8000-000000000001"
SHOWN = "Chunk ID: a1\nWall time: 0.1 seconds\nProcess exited with code {}\nOutput:\n{}"
UPDATE = "*** Begin Patch\n*** Update File: {}\n@@\n{}\n*** End Patch"
ADD = "*** Begin Patch\n*** Add File: {}\n{}\n*** End Patch"
TWO = " one\n-two\n+2"


def ran(command: str, shown: str = "", code: int = 0) -> tuple[dict[str, Any], str]:
    return {"name": "exec_command", "arguments": json.dumps({"cmd": command})}, SHOWN.format(
        code, shown
    )


def patch(text: str) -> tuple[dict[str, Any], str]:
    given = {"type": "custom_tool_call", "name": "apply_patch", "input": text}
    return given, '{"output": "Success.", "metadata": {"exit_code": 0}}'


def made(
    tmp_path: Path, store: Store, *calls: tuple[dict[str, Any], str], path: str = "/repo/a.py"
) -> list[Version]:
    lines = [meta(), said("user", "Work on it.")]
    for number, (call, shown) in enumerate(calls, 1):
        lines += [item("function_call", call_id=f"c{number}", **call)]
        lines += [output(f"c{number}", shown)]
    assert ingest_files(store, [write_lines(tmp_path / "rollout.jsonl", lines)]).skipped == {}
    named = {head.fields["source"]["path"] for head in store.query("file")}
    return versions(store, path, ROLLOUT) if path in named else []


SYSTEM = ("one\ntwo\n", "system", None)


@pytest.mark.parametrize(
    "command", ["cat a.py", "cat /repo/a.py", "cd /repo && cat ./a.py", "sed -n '1,200p' a.py"]
)
def test_a_file_that_is_shown_as_a_whole_has_a_version(
    tmp_path: Path, store: Store, command: str
) -> None:
    assert made(tmp_path, store, ran(command, "one\ntwo\n")) == [SYSTEM]


@pytest.mark.parametrize(
    ("command", "shown", "code"),
    [
        ("cat a.py b.py", "one\ntwo\n", 0),
        ("cat a.py | head", "one\n", 0),
        ("cat a.py && ls", "one\n", 0),
        ("cat $FILE", "one\n", 0),
        ("cat -n a.py", "     1\tone\n", 0),
        ("sed -n '1,2p' a.py", "one\ntwo\n", 0),
        ("sed -n '5,200p' a.py", "one\ntwo\n", 0),
        ("cat a.py", "cat: a.py: No such file\n", 1),
        ("cat a.py", "Total output lines: 900\n\none\n…80 tokens truncated…\nlast\n", 0),
        ("cat a.py", "one\n[... omitted 8 of 900 lines ...]\nlast\n", 0),
    ],
)
def test_a_part_of_a_file_has_none(
    tmp_path: Path, store: Store, command: str, shown: str, code: int
) -> None:
    assert made(tmp_path, store, ran(command, shown, code)) == []


@pytest.mark.parametrize(
    ("change", "after"),
    [
        (patch(UPDATE.format("a.py", TWO)), "one\n2\n"),
        (patch(UPDATE.format("/repo/a.py", "-one\n two")), "two\n"),
        (ran(f"apply_patch <<'EOF'\n{UPDATE.format('a.py', TWO)}\nEOF"), "one\n2\n"),
        (ran("cat >> a.py <<'EOF'\nthree\nEOF"), "one\ntwo\nthree\n"),
        (ran("cat > a.py <<'EOF'\none\nEOF"), "one\n"),
        (ran("cat <<EOF > a.py\none\nEOF"), "one\n"),
        (patch(ADD.format("a.py", "+one\n+new")), "one\nnew\n"),
    ],
)
def test_what_is_done_to_a_known_file_is_its_agents(
    tmp_path: Path, store: Store, change: tuple[dict[str, Any], str], after: str
) -> None:
    found = made(tmp_path, store, ran("cat a.py", "one\ntwo\n"), change)
    assert found == [SYSTEM, (after, "agent", "c2")]


def test_the_text_before_a_patch_is_the_one_after_it_with_the_patch_taken_back(
    tmp_path: Path, store: Store, foredeck: Foredeck
) -> None:
    calls = (
        patch(UPDATE.format("a.py", TWO)),
        patch(UPDATE.format("a.py", " 2\n+three")),
        ran("cat a.py", "zero\none\n2\nthree\n"),
    )
    assert made(tmp_path, store, *calls) == [
        ("zero\none\ntwo\n", "system", None),
        ("zero\none\n2\n", "agent", "c1"),
        ("zero\none\n2\nthree\n", "agent", "c2"),
    ]
    lines = foredeck.json(tmp_path / "state", "blame", "/repo/a.py")["lines"]
    assert [line["tool_call"] for line in lines] == [None, None, "c1", "c2"]


@pytest.mark.parametrize(
    "between",
    [
        [patch(UPDATE.format("a.py", " x\n-y\n+two"))],
        [patch(UPDATE.format("a.py", " one\n-y\n+two")), ran("sed -i -f edits.sed a.py")],
        [ran("sed -i 's/[[:space:]]*$//' a.py")],
        [ran("cat > a.py <<EOF\n$TEXT\nEOF")],
    ],
)
def test_a_text_before_that_is_not_certain_stays_unknown(
    tmp_path: Path, store: Store, between: list[tuple[dict[str, Any], str]]
) -> None:
    calls = [*between, ran("cat a.py", "one\ntwo\n")]
    assert made(tmp_path, store, *calls) == [SYSTEM]


def test_a_patch_that_does_not_fit_what_is_known_tells_only_what_can_be_taken_back(
    tmp_path: Path, store: Store
) -> None:
    calls = [
        ran("cat a.py", "one\ntwo\n"),
        patch(UPDATE.format("a.py", " six\n-y\n+seven")),
        ran("cat a.py", "six\nseven\n"),
    ]
    assert made(tmp_path, store, *calls) == [
        SYSTEM,
        ("six\ny\n", "system", None),
        ("six\nseven\n", "agent", "c2"),
    ]


def test_a_file_that_a_patch_moves_is_not_all_the_agents(tmp_path: Path, store: Store) -> None:
    moving = UPDATE.format("a.py", TWO).replace("@@", "*** Move to: b.py\n@@")
    calls = [ran("cat a.py", "one\ntwo\n"), patch(moving)]
    assert made(tmp_path, store, *calls, path="/repo/b.py") == [SYSTEM, ("one\n2\n", "agent", "c2")]


def test_hunks_stand_behind_their_anchors() -> None:
    text = "def a():\n    x = 1\n\ndef b():\n    x = 1\n"
    (found,) = patches_in(
        "*** Begin Patch\n*** Update File: a.py\n@@ def b():\n-    x = 1\n+    x = 2\n"
        "*** End of File\n*** End Patch"
    )
    after = text[:-2] + "2\n"
    assert patched(text, found.hunks) == after
    assert unpatched(after, found.hunks) == text
    assert patched("def a():\n", found.hunks) is None
    assert patches_in("*** Begin Patch\n*** Update File: a.py\n@@\n-x") == []
