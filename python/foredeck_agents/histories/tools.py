"""Other agents' tool calls in Pi's words, which are stored, and patches of Codex's `apply_patch`.

Other calls stay as they are. Patches are read, carried out, and taken back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

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


_FILE = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+?)\s*\Z")
_BEGIN, _END = "*** Begin Patch", "*** End Patch"


class Hunk(NamedTuple):
    """Lines to replace. `anchor`: a line somewhere before; `at_end`: the file's last ones."""

    anchor: str
    old: tuple[str, ...]
    new: tuple[str, ...]
    at_end: bool = False


class FilePatch(NamedTuple):
    """A patch of one file; `added`: a new one's text."""

    path: str
    hunks: tuple[Hunk, ...] = ()
    added: str | None = None
    moved_to: str | None = None


def patches_in(text: str) -> list[FilePatch]:
    """The files of a patch, which may be in a command."""
    lines = text.split("\n")
    begins = next((n for n, line in enumerate(lines) if line.strip().endswith(_BEGIN)), None)
    if begins is None:
        return []
    ends = next((n for n in range(begins, len(lines)) if lines[n].startswith(_END)), None)
    if ends is None:
        return []
    patches: list[FilePatch] = []
    for kind, path, body in _files(lines[begins + 1 : ends]):
        if kind == "Add":
            added = [line[1:] for line in body if line.startswith("+")]
            patches.append(FilePatch(path, added="".join(f"{line}\n" for line in added)))
        elif kind == "Update":
            moved = next((line for line in body[:1] if line.startswith("*** Move to: ")), None)
            moved_to = None if moved is None else moved.removeprefix("*** Move to: ").strip()
            patches.append(FilePatch(path, tuple(_hunks(body)), moved_to=moved_to))
    return patches


def _files(lines: Sequence[str]) -> Iterator[tuple[str, str, list[str]]]:
    named: tuple[str, str] | None = None
    body: list[str] = []
    for line in lines:
        if (match := _FILE.match(line)) is not None:
            if named is not None:
                yield *named, body
            named, body = (match[1], match[2]), []
        else:
            body.append(line)
    if named is not None:
        yield *named, body


def _hunks(body: Sequence[str]) -> Iterator[Hunk]:
    anchor, old, new, at_end = "", list[str](), list[str](), False
    for line in [*body, "@@"]:
        if line.startswith("@@"):
            if old or new:
                yield Hunk(anchor, tuple(old), tuple(new), at_end)
                old, new, at_end = [], [], False
            anchor = line[2:].strip().removesuffix("@@").strip()
        elif line.startswith("*** End of File"):
            at_end = True
        elif line.startswith("***"):
            continue
        else:
            if not line.startswith("+"):
                old.append(line[1:])
            if not line.startswith("-"):
                new.append(line[1:])


def patched(text: str, hunks: Sequence[Hunk]) -> str | None:
    """The text after a patch, if it fits."""
    lines, end = _split(text)
    at = 0
    for hunk in hunks:
        if hunk.anchor:
            anchor = _find(lines, (hunk.anchor,), at)
            if anchor is None:
                return None
            at = anchor + 1
        if not hunk.old:
            place: int | None = len(lines)
        elif hunk.at_end:
            place = _find(lines, hunk.old, max(at, len(lines) - len(hunk.old)))
        else:
            place = _find(lines, hunk.old, at)
        if place is None:
            return None
        lines[place : place + len(hunk.old)] = hunk.new
        at = place + len(hunk.new)
    return "\n".join(lines) + (end or "\n")


def unpatched(text: str, hunks: Sequence[Hunk]) -> str | None:
    """The text before a patch, if certain."""
    lines, end = _split(text)
    for hunk in reversed(hunks):
        places = _places(lines, hunk.new)
        if hunk.at_end:
            places = [place for place in places if place + len(hunk.new) == len(lines)]
        if len(places) != 1 or not hunk.new:
            return None
        lines[places[0] : places[0] + len(hunk.new)] = hunk.old
    before = "\n".join(lines) + end if lines else ""
    # Taken back rightly, the patch makes the same text of it again.
    again = patched(before, hunks)
    return before if again is not None and _split(again)[0] == _split(text)[0] else None


def _split(text: str) -> tuple[list[str], str]:
    body = text.removesuffix("\n")
    return (body.split("\n") if text else []), "\n" if body != text else ""


def _places(lines: Sequence[str], wanted: Sequence[str]) -> list[int]:
    return [n for n in range(len(lines) - len(wanted) + 1) if _stand(lines, wanted, n)]


def _stand(lines: Sequence[str], wanted: Sequence[str], at: int) -> bool:
    # The first one tells most places apart, without a copy of the others.
    is_first = lines[at : at + 1] == [*wanted[:1]]
    return is_first and lines[at : at + len(wanted)] == [*wanted]


_LOOSELY: tuple[Callable[[str], str], ...] = (str, str.rstrip, str.strip)
"""How lines may differ for Codex, strictest first."""


def _find(lines: Sequence[str], wanted: Sequence[str], start: int) -> int | None:
    for plain in _LOOSELY:
        given, pattern = [*map(plain, lines)], [*map(plain, wanted)]
        for n in range(start, len(given) - len(pattern) + 1):
            if _stand(given, pattern, n):
                return n
    return None
