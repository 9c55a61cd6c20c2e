"""Calls in the names of Pi's tools, given back in those of their agent."""

from __future__ import annotations

from typing import Any

import pytest

from foredeck.histories.tools import in_pis_tools, in_their_tools

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
