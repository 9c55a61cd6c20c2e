"""Other agents' tool calls in Pi's words, which are stored; others stay as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from foredeck.commands import joined
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
"""Files of a patch in a call's JSON."""
_PATCHING = frozenset({"apply_patch", "bash", "exec"})
"""Tools that take a patch: Codex's own, a shell, and code mode."""


def in_pis_tools(message: Message) -> Message:
    """The message as Pi would have it."""
    match message.get("role"):
        case "assistant":
            return {**message, "content": [_block(block) for block in message["content"]]}
        case "toolResult":
            return _result(message)
        case _:
            return message


def in_their_tools(block: Block, theirs: Block) -> Block:
    """A call in Pi's words as its agent has it; `theirs`: as it came."""
    if theirs["name"] not in _TOOLS:
        changed = block["arguments"]
        return {**theirs, "arguments": {n: changed[n] for n in theirs["arguments"] if n in changed}}
    arguments = _back(theirs["arguments"], block["arguments"])
    return {**theirs, "arguments": arguments}


def touching(tool: str, arguments: Arguments) -> tuple[str, Arguments]:
    """The call of Pi's that touches the same files, also for a patch."""
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
    text = block.get("text")
    whole = _OPENCODE_FILE.match(text) if isinstance(text, str) else None
    if whole is None:
        return block
    return {**block, "text": _OPENCODE_LINE_NUMBER.sub("", whole[1]) + "\n"}


def _unnumbered(block: Block) -> Block:
    text = block.get("text")
    if not isinstance(text, str) or not _LINE_NUMBER.match(text):
        return block
    return {**block, "text": _LINE_NUMBER.sub("", text)}


def _renamed(arguments: Arguments) -> Arguments:
    return {_NAMES.get(name, name): value for name, value in arguments.items()}


def _edits(arguments: Arguments) -> Arguments:
    edits = arguments.get("edits")
    listed = edits if isinstance(edits, list) else []
    renamed = [_renamed(edit) if isinstance(edit, dict) else edit for edit in listed]
    return {**_renamed(arguments), "edits": renamed}


def _shell(arguments: Arguments) -> Arguments:
    renamed = _renamed(arguments)
    return {name: joined(v) if name == "command" else v for name, v in renamed.items()}


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
"""Pi's tool and arguments, by the other agent's name."""
