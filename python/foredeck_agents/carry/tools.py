"""Calls of Pi's tools in another agent's words (the way back of `histories/tools.py`)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any

from foredeck_agents.histories.tools import FilePatch, patches_in

Arguments = dict[str, Any]
Call = tuple[str, Arguments]

_NAME = re.compile(r"[^A-Za-z0-9_-]")
_MOST_NAME = 64
"""Characters that providers take in the name of a tool."""
PI_TOOLS = frozenset({"read", "bash", "edit", "write", "grep", "find", "ls"})


def their_calls(tool: str, arguments: Arguments, words: Words | None, folder: str) -> list[Call]:
    """A call as another agent would have made it, perhaps as several."""
    patches = _patches(tool, arguments) if words is not APPLYING else []
    calls = [each for patch in patches for each in _of_patch(patch)] or _single(tool, arguments)
    return [_in_words(name, given, words, folder) for name, given in calls]


def _patches(tool: str, arguments: Arguments) -> list[FilePatch]:
    text = arguments.get("command") if tool == "bash" else arguments.get("input")
    if tool not in ("bash", "apply_patch") or not isinstance(text, str):
        return []
    begins = text.lstrip()
    is_alone = begins.startswith("*** Begin Patch") or begins.startswith("apply_patch <<")
    patches = patches_in(text) if is_alone else []
    deletes = "\n*** Delete File: " in text
    is_plain = all(not p.moved_to and all(hunk.old for hunk in p.hunks) for p in patches)
    return patches if is_plain and not deletes else []


def _of_patch(patch: FilePatch) -> list[Call]:
    if patch.added is not None:
        return [("write", {"path": patch.path, "content": patch.added})]
    changes = (("\n".join(hunk.old), "\n".join(hunk.new)) for hunk in patch.hunks)
    return [("edit", {"path": patch.path, "oldText": old, "newText": new}) for old, new in changes]


def _single(tool: str, arguments: Arguments) -> list[Call]:
    """An edit in several places as several edits, which only Pi's takes at once."""
    edits = arguments.get("edits")
    if tool != "edit" or not isinstance(edits, list) or not all(map(_is_edit, edits)):
        return [(tool, arguments)]
    rest = {name: value for name, value in arguments.items() if name != "edits"}
    return [("edit", {**rest, **edit}) for edit in edits] or [(tool, arguments)]


def _is_edit(value: Any) -> bool:
    return isinstance(value, dict) and {"oldText", "newText"} <= value.keys()


def _in_words(tool: str, given: Arguments, words: Words | None, folder: str) -> Call:
    name = _NAME.sub("_", tool)[:_MOST_NAME] or "tool"
    if tool not in PI_TOOLS or words is None:
        return name, given
    try:
        return words[tool](given, folder)
    except (KeyError, TypeError):  # arguments that the model got wrong: it was told so
        return name, given


Words = Mapping[str, Callable[[Arguments, str], Call]]
"""The same call in the agent's words, by Pi's tool."""


_Names = Mapping[str, tuple[str, Mapping[str, str]]]
"""The agent's name of a tool and its arguments, by Pi's; the first are needed."""
_WHOLE = frozenset({"file_path", "filePath"})
"""Arguments that are absolute paths."""
_NEEDED = frozenset({"path", "command", "oldText", "newText", "content", "pattern"})


def _renaming(table: _Names) -> Words:
    shell, of_shell = table["bash"]

    def renamed(tool: str, given: Arguments, folder: str) -> Call:
        if tool == "ls":
            return shell, {of_shell["command"]: _shell(["ls", given.get("path") or "."])}
        name, names = table[tool]
        renaming: Arguments = {}
        for pis, theirs in names.items():
            if pis in given or (pis in _NEEDED and theirs != "path"):
                value = given[pis]
                whole = theirs in _WHOLE
                renaming[theirs] = str(PurePath(folder, str(value))) if whole else value
        return name, renaming

    return {tool: partial(renamed, tool) for tool in PI_TOOLS}


def _shell(words: Sequence[Any]) -> str:
    return shlex.join(map(str, words))


_PART = {"offset": "offset", "limit": "limit"}
_SEARCH = {"pattern": "pattern", "path": "path"}
CLAUDE_CODE: Words = _renaming(
    {
        "read": ("Read", {"path": "file_path", **_PART}),
        "bash": ("Bash", {"command": "command", "description": "description"}),
        "edit": ("Edit", {"path": "file_path", "oldText": "old_string", "newText": "new_string"}),
        "write": ("Write", {"path": "file_path", "content": "content"}),
        "grep": ("Grep", {**_SEARCH, "glob": "glob"}),
        "find": ("Glob", _SEARCH),
    }
)
OPENCODE: Words = _renaming(
    {
        "read": ("read", {"path": "filePath", **_PART}),
        "bash": ("bash", {"command": "command", "description": "description"}),
        "edit": ("edit", {"path": "filePath", "oldText": "oldString", "newText": "newString"}),
        "write": ("write", {"path": "filePath", "content": "content"}),
        "grep": ("grep", {**_SEARCH, "glob": "include"}),
        "find": ("glob", _SEARCH),
    }
)


def _run(command: str) -> Call:
    return "exec_command", {"cmd": command}


def _sed(arguments: Arguments) -> str:
    path = shlex.quote(str(arguments["path"]))
    first, count = int(arguments.get("offset") or 1), arguments.get("limit")
    if first == 1 and count is None:
        return f"cat {path}"
    last = "$" if count is None else first + int(count) - 1
    return f"sed -n '{first},{last}p' {path}"


def _patch(arguments: Arguments) -> str:
    lines = ["*** Begin Patch", f"*** Update File: {arguments['path']}", "@@"]
    lines += [f"-{line}" for line in str(arguments["oldText"]).split("\n")]
    lines += [f"+{line}" for line in str(arguments["newText"]).split("\n")]
    return _heredoc("apply_patch", "\n".join([*lines, "*** End Patch"]))


def _heredoc(command: str, text: str) -> str:
    end = "EOF"
    while f"\n{end}" in f"\n{text}":
        end += "_"
    return f"{command} <<'{end}'\n{text.removesuffix(chr(10))}\n{end}"


def _search(*command: str) -> Callable[[Arguments, str], Call]:
    return lambda a, _cwd: _run(_shell([*command, a["pattern"], a.get("path") or "."]))


def _written(arguments: Arguments) -> str:
    return _heredoc(f"cat > {shlex.quote(str(arguments['path']))}", str(arguments["content"]))


APPLYING: Words = {
    "read": lambda a, _cwd: _run(_sed(a)),
    "bash": lambda a, _cwd: _run(str(a["command"])),
    "edit": lambda a, _cwd: _run(_patch(a)),
    "write": lambda a, _cwd: _run(_written(a)),
    "grep": _search("rg", "-n"),
    "find": _search("rg", "--files", "-g"),
    "ls": lambda a, _cwd: _run(_shell(["ls", a.get("path") or "."])),
}
