"""The tools of other agents: their calls by the names and arguments that Pi's tools have, which are
those that are stored, and results as Pi has them. Tools that Pi does not have stay as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from foredeck.context.messages.items import Block
from foredeck.context.messages.shape import Message

Arguments = dict[str, Any]

_LINE_NUMBER = re.compile(r"^ *\d+(?:→|\t)", re.MULTILINE)
_OPENCODE_FILE = re.compile(
    r"<path>[^\n]*</path>\n<type>file</type>\n<content>\n(.*?)\n\n\(End of file[^\n]*\n</content>",
    re.DOTALL,
)
_OPENCODE_LINE_NUMBER = re.compile(r"^\d+: ", re.MULTILINE)
_NAMES = {
    "file_path": "path",
    "filePath": "path",
    "old_string": "oldText",
    "oldString": "oldText",
    "new_string": "newText",
    "newString": "newText",
    "cmd": "command",
}
_PATCHED = re.compile(r"\*\*\* (?:Update|Add|Delete) File: (.+?)(?:\\+n|\")")
"""In the JSON of a call: the files of a patch as Codex writes it. A script has its line ends
escaped once more."""
_PATCHING = frozenset({"apply_patch", "bash", "exec"})
"""Tools that take a patch: Codex's own, a shell, and the scripts of code mode."""
_SHELLS = frozenset({"bash", "sh", "zsh"})


def in_pis_tools(message: Message) -> Message:
    """The message of an agent's history as Pi would have it; the same one where nothing differs."""
    match message.get("role"):
        case "assistant":
            return {**message, "content": [_block(block) for block in message["content"]]}
        case "toolResult":
            return _result(message)
        case _:
            return message


def in_their_tools(block: Block, theirs: Block) -> Block:
    """A tool call by the names and arguments of Pi's tools, some of which were changed, as its
    agent has it. `theirs`: the same call as it came from that agent."""
    if theirs["name"] not in _TOOLS:
        changed = block["arguments"]
        return {**theirs, "arguments": {n: changed[n] for n in theirs["arguments"] if n in changed}}
    arguments = _back(theirs["arguments"], block["arguments"])
    return {**theirs, "arguments": arguments}


def touching(tool: str, arguments: Arguments) -> tuple[str, Arguments]:
    """The call of Pi's tools that touches the same files. `tool` and `arguments`: as `in_pis_tools`
    has them, where a patch of Codex's is still the text of whatever tool takes it."""
    text = json.dumps(arguments, ensure_ascii=False) if tool in _PATCHING else ""
    files = _PATCHED.findall(text)
    if len(files) == 1:
        return "edit", {"path": files[0]}
    return ("bash", {"command": " ".join(["apply_patch", *files])}) if files else (tool, arguments)


def _back(theirs: Any, changed: Any) -> Any:
    if isinstance(theirs, dict) and isinstance(changed, dict):
        return {
            name: _back(value, changed[_NAMES.get(name, name)])
            for name, value in theirs.items()
            if _NAMES.get(name, name) in changed
        }
    if isinstance(theirs, list) and isinstance(changed, list) and len(theirs) == len(changed):
        return [_back(one, other) for one, other in zip(theirs, changed, strict=True)]
    if isinstance(theirs, list) and isinstance(changed, str):
        # A shell's words, which were joined: only of `bash -lc COMMAND` can they be told apart.
        is_script = len(theirs) == 3 and changed != " ".join(map(str, theirs))
        return [*theirs[:2], changed] if is_script else theirs
    return changed


def _block(block: Block) -> Block:
    if block.get("type") != "toolCall" or block["name"] not in _TOOLS:
        return block
    name, rewritten = _TOOLS[block["name"]]
    return {**block, "name": name, "arguments": rewritten(block["arguments"])}


def _result(message: Message) -> Message:
    if message["toolName"] not in _TOOLS:
        return message
    name, _ = _TOOLS[message["toolName"]]
    if name != "read":
        return {**message, "toolName": name}
    as_file = _unwrapped_file if message["toolName"] == "read" else _unnumbered
    return {**message, "toolName": name, "content": [*map(as_file, message["content"])]}


def _unwrapped_file(block: Block) -> Block:
    """The lines of a file as opencode shows it."""
    text = block.get("text")
    whole = _OPENCODE_FILE.match(text) if isinstance(text, str) else None
    if whole is None:
        return block
    return {**block, "text": _OPENCODE_LINE_NUMBER.sub("", whole[1]) + "\n"}


def _unnumbered(block: Block) -> Block:
    """The lines of a file without the numbers that other agents put before them."""
    text = block.get("text")
    if not isinstance(text, str) or not _LINE_NUMBER.match(text):
        return block
    return {**block, "text": _LINE_NUMBER.sub("", text)}


def _renamed(arguments: Arguments) -> Arguments:
    return {_NAMES.get(name, name): value for name, value in arguments.items()}


def _edits(arguments: Arguments) -> Arguments:
    """Several edits of one file."""
    edits = arguments.get("edits")
    listed = edits if isinstance(edits, list) else []
    renamed = [_renamed(edit) if isinstance(edit, dict) else edit for edit in listed]
    return {**_renamed(arguments), "edits": renamed}


def _shell(arguments: Arguments) -> Arguments:
    """A command that is given as a list of words, most often `bash -lc COMMAND`."""
    words = arguments.get("command")
    if not isinstance(words, list):
        return _renamed(arguments)
    script = len(words) == 3 and str(words[0]).rpartition("/")[2] in _SHELLS
    return {**arguments, "command": words[2] if script else " ".join(map(str, words))}


_TOOLS: dict[str, tuple[str, Callable[[Arguments], Arguments]]] = {
    "Bash": ("bash", _renamed),
    "Read": ("read", _renamed),
    "Edit": ("edit", _renamed),
    "MultiEdit": ("edit", _edits),
    "Write": ("write", _renamed),
    "Grep": ("grep", _renamed),
    "Glob": ("find", _renamed),
    "LS": ("ls", _renamed),
    "exec_command": ("bash", _renamed),
    "shell": ("bash", _shell),
    "shell_command": ("bash", _shell),
    "local_shell": ("bash", _shell),
    # opencode's, which have the names of Pi's.
    "read": ("read", _renamed),
    "edit": ("edit", _renamed),
    "write": ("write", _renamed),
    "glob": ("find", _renamed),
    "list": ("ls", _renamed),
}
"""By the other agent's name: Pi's, and how its arguments become Pi's."""
