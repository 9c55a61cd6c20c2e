"""Which paths a tool call touched, by its arguments and output alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from foredeck.sources.snapshots import ToolEvent
from foredeck.sources.tool_calls import GUESSES, spellings, tool_path, touched_paths


def touched(tool: str, arguments: dict[str, Any], text: str = "", **more: Any) -> list[str]:
    event = ToolEvent(tool, arguments, text, cwd="/repo", **more)
    return [touch.path for touch in touched_paths(event, 200)]


def test_an_unknown_tool_mentions_its_path() -> None:
    event = ToolEvent("lint", {"path": "a.py", "level": 3}, "fine")
    assert [(t.path, t.role) for t in touched_paths(event, 10)] == [("a.py", "mentioned")]
    assert touched("web_search", {"query": "a.py"}) == []


@pytest.mark.parametrize("value", [None, 7, "", ["a"], "a\0b"])
def test_a_path_that_is_none_touches_nothing(value: object) -> None:
    assert touched("read", {"path": value}) == []


def test_results_that_are_shown_from_the_working_folder_are_not_doubled() -> None:
    assert touched("find", {"pattern": "*", "path": "pi/skills/"}, "pi/skills/a.md") == [
        "pi/skills/a.md"
    ]


def test_grep_names_each_file_once() -> None:
    text = (
        "a.py:1: x = 1\na.py:9: x: 2\nlib/b.py:3: x\n\n[100 matches limit reached. Use limit=200]"
    )
    assert touched("grep", {"pattern": "x", "path": "src"}, text) == ["src/a.py", "src/lib/b.py"]
    assert touched("grep", {"pattern": "x", "path": "src/a.py"}, "a.py:1: x") == ["src/a.py"]
    assert touched("grep", {"pattern": "x"}, "No matches found") == []


def test_grep_does_not_take_context_lines_for_hits() -> None:
    text = "a.py-1- see b.py:7: there\na.py:2: hit"
    assert touched("grep", {"pattern": "hit", "context": 1}, text) == ["a.py"]


def test_bash_words_that_may_be_paths() -> None:
    found = touched(
        "bash", {"command": "sed -i 's/a/b/' src/a.py && cat \"my file.txt\" > out.log"}
    )
    assert {"src/a.py", "my file.txt", "out.log"} <= set(found)
    assert not {"-i", "&&", ">", ""} & set(found)


def test_bash_paths_start_from_a_leading_cd() -> None:
    assert "pkg/a.py" in touched("bash", {"command": "cd pkg && cat a.py"})
    assert "/x y/a.py" in touched("bash", {"command": 'cd "/x y"; cat a.py'})


def test_bash_output_counts_while_it_is_short() -> None:
    assert "src/b.py" in touched("bash", {"command": "git status"}, "\tmodified:   src/b.py\n")
    assert "src/b.py" not in touched("bash", {"command": "git log"}, "src/b.py\n" + "x" * 5000)


def test_bash_leaves_out_here_documents_and_system_files() -> None:
    command = "cat > note.md <<'EOF'\nsee other.py\nEOF\ncat tail.txt 2>/dev/null"
    found = touched("bash", {"command": command})
    assert "note.md" in found
    assert "tail.txt" in found
    assert "other.py" not in found
    assert not [path for path in found if path.startswith("/dev")]


def test_a_file_in_shared_memory_is_one() -> None:
    assert "/dev/shm/data/a.py" in touched("bash", {"command": "cat /dev/shm/data/a.py"})


def test_bash_guesses_are_bounded() -> None:
    found = touched("bash", {"command": " ".join(f"f{n}.py" for n in range(10_000))})
    assert 0 < len(found) <= GUESSES


@pytest.mark.parametrize("command", [None, 3, "", "((((((", "'" * 9000, "<<A\n" * 3000])
def test_bash_takes_any_command(command: object) -> None:
    touched("bash", {"command": command}, "\0 \ud800 out")


def test_tool_path_reads_a_path_as_the_host_does() -> None:
    assert tool_path("@src/a.py") == "src/a.py"
    assert tool_path("a\u00a0b\u202fc") == "a b c"
    assert tool_path("~/x") == str(Path.home() / "x")
    assert tool_path("~x") == "~x"
    assert tool_path("file:///a%20b.txt") == "/a b.txt"


def test_spellings_that_macos_makes() -> None:
    assert spellings("/plain.txt") == []
    assert "/Shot 1\u202fPM.png" in spellings("/Shot 1 PM.png")
    assert "/re\u0301sume\u0301" in spellings("/r\u00e9sum\u00e9")
    assert "/d\u2019ecran" in spellings("/d'ecran")
