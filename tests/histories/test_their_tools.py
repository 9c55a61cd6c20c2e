"""Calls in the names of Pi's tools, given back in those of their agent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from foredeck_agents.histories.tools import in_pis_tools, in_their_tools, touching

CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "Claude Code's edit": (
        "Edit",
        {"file_path": "/a", "old_string": "x", "new_string": "y", "replace_all": False},
    ),
    "several edits": (
        "MultiEdit",
        {"file_path": "/a", "edits": [{"old_string": "x", "new_string": "y"}]},
    ),
    "opencode's edit": ("edit", {"filePath": "/a", "oldString": "x", "newString": "y"}),
    "a shell's words": ("shell", {"command": ["bash", "-lc", "ls -la"], "timeout": 7}),
    "other words": ("shell", {"command": ["ls", "-la"]}),
    "Codex's command": ("exec_command", {"cmd": "ls", "yield_time_ms": 100}),
    "an unknown tool": ("mcp__x__y", {"file_path": "/a", "cmd": [1, {"b": 2}]}),
}


def _call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"type": "toolCall", "id": "c", "name": name, "arguments": arguments}


@pytest.mark.parametrize("case", CALLS)
def test_what_was_not_changed_comes_back(case: str) -> None:
    theirs = _call(*CALLS[case])
    (ours,) = in_pis_tools({"role": "assistant", "content": [theirs]})["content"]
    assert in_their_tools(ours, theirs) == theirs
    assert list(in_their_tools(ours, theirs)["arguments"]) == list(theirs["arguments"])


def test_what_has_folded_is_folded_in_its_agents_words() -> None:
    for case, old, new in (
        ("Claude Code's edit", "oldText", "old_string"),
        ("opencode's edit", "newText", "newString"),
        ("Codex's command", "command", "cmd"),
    ):
        theirs = _call(*CALLS[case])
        (ours,) = in_pis_tools({"role": "assistant", "content": [theirs]})["content"]
        folded = {**ours, "arguments": {**ours["arguments"], old: "(folded)"}}
        expected = {**theirs["arguments"], new: "(folded)"}
        assert in_their_tools(folded, theirs)["arguments"] == expected
    theirs = _call(*CALLS["a shell's words"])
    folded = _call("bash", {"command": "(folded)", "timeout": 7})
    assert in_their_tools(folded, theirs)["arguments"]["command"] == ["bash", "-lc", "(folded)"]


PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** Add File: b.py\n+z\n*** End Patch"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("apply_patch", {"input": PATCH}),
        ("bash", {"command": f"apply_patch <<'EOF'\n{PATCH}\nEOF"}),
        ("exec", {"input": f"text(await tools.apply_patch({json.dumps(PATCH)}))"}),
    ],
)
def test_a_patch_touches_the_files_that_it_names(tool: str, arguments: dict[str, Any]) -> None:
    assert touching(tool, arguments) == ("bash", {"command": "apply_patch a.py b.py"})
    one = {name: text.replace("Add File: b", "File: b") for name, text in arguments.items()}
    assert touching(tool, one) == ("edit", {"path": "a.py"})


def test_a_patch_that_is_written_to_a_file_touches_that_file() -> None:
    written = {"path": "my.patch", "content": PATCH}
    assert touching("write", written) == ("write", written)


def test_a_file_as_opencode_shows_it_is_the_file() -> None:
    shown = (
        "<path>/a</path>\n<type>file</type>\n<content>\n1: x = 1\n2: 3: y\n\n"
        "(End of file - total 2 lines)\n</content>"
    )
    result = {
        "role": "toolResult",
        "toolName": "read",
        "content": [{"type": "text", "text": shown}],
    }
    assert in_pis_tools(result)["content"][0]["text"] == "x = 1\n3: y\n"
