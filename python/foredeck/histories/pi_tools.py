"""Tool calls of other agents by the names and arguments of Pi's tools, and results as Pi has them.

Tools that Pi does not have stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from foredeck.histories.records import Block, Message

Arguments = dict[str, Any]

_LINE_NUMBER = re.compile(r"^ *\d+(?:→|\t)", re.MULTILINE)
_NAMES = {"file_path": "path", "old_string": "oldText", "new_string": "newText", "cmd": "command"}
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
    return {**message, "toolName": name, "content": [*map(_unnumbered, message["content"])]}


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
}
"""By the other agent's name: Pi's, and how its arguments become Pi's."""
