"""What Codex's commands and patches say of files."""

from __future__ import annotations

import os.path
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from foredeck.commands import Heredoc, ShellStep, joined, split_cd, steps
from foredeck.context.messages.items import Block
from foredeck_agents.histories.tools import Hunk, in_pis_tools, patched, patches_in, unpatched

CODEX_TOOLS = frozenset({"apply_patch", "exec_command", "local_shell", "shell", "shell_command"})
_HEADER = re.compile(r"(?:Chunk ID|Exit code|Wall time): [^\n]*\n(?:[^\n]*\n){0,6}?Output:\n")
_CUT = re.compile(
    r"…\d+ (?:tokens|chars|lines) truncated…|\[\.\.\. omitted \d+|\ATotal output lines: "
)
_RANGE = re.compile(r"1,(\d+)p")
_MEANS_SOMETHING = re.compile(r"[|&;<>$`*?()\[\]{}!\n]")
"""Characters that a shell does not take as they stand."""

Change = Callable[[str], str | None]


class FileStep(NamedTuple):
    """What one call did to one file.

    `text`: the whole text shown or written; `before`: an earlier path; `change`, `reverse`: between
    the texts before and after, if certain.
    """

    path: str
    text: str | None = None
    is_shown: bool = False
    before: str | None = None
    change: Change | None = None
    reverse: Change | None = None


def codex_steps(call: Block, shown: str, cwd: str) -> list[FileStep]:
    """The files of a successful call of Codex's; `shown`: its output."""
    arguments = call["arguments"]
    patch = arguments.get("input") if call["name"] == "apply_patch" else None
    named: Mapping[str, Any] = in_pis_tools({"role": "assistant", "content": [call]})["content"][0]
    command = joined(named["arguments"].get("command"))
    folder = _joined(cwd, arguments.get("workdir") or arguments.get("working_directory"))
    text = patch if isinstance(patch, str) else command
    if not isinstance(text, str):
        return []
    moved, rest = split_cd(text)
    folder = _joined(folder, moved)
    steps = [*_patch_steps(text)] or [*_command_steps(rest.strip(), _output(shown))]
    placed = [
        step._replace(
            path=_joined(folder, step.path),
            before=None if step.before is None else _joined(folder, step.before),
        )
        for step in steps
    ]
    return [step for step in placed if os.path.isabs(step.path) and "\0" not in step.path]  # noqa: PTH117


def _joined(folder: str, path: Any) -> str:
    return os.path.normpath(os.path.join(folder, path)) if isinstance(path, str) else folder  # noqa: PTH118


def _output(shown: str) -> str | None:
    header = _HEADER.match(shown)
    text = shown[header.end() :] if header else shown
    return None if _CUT.search(text) else text


def _patch_steps(text: str) -> Iterator[FileStep]:
    for patch in patches_in(text):
        if patch.added is not None:
            yield FileStep(patch.path, text=patch.added)
        elif patch.hunks or patch.moved_to:
            hunks = patch.hunks
            yield FileStep(
                patch.moved_to or patch.path,
                before=patch.path if patch.moved_to else None,
                change=_bound(patched, hunks),
                reverse=_bound(unpatched, hunks),
            )


def _bound(function: Callable[[str, Sequence[Hunk]], str | None], hunks: Sequence[Hunk]) -> Change:
    return lambda text: function(text, hunks)


def _command_steps(command: str, shown: str | None) -> Iterator[FileStep]:
    match steps(command):
        case [step] if not step.is_piped and command.startswith(step.words[0]):
            if step.heredoc is not None:
                yield from _written(step, step.heredoc)
            elif step.program == "sed":
                yield from _sed_steps(_plain(step, quoted=True), shown)
            elif step.program == "cat" and shown is not None:
                words = _plain(step)
                if len(words) == 2 and words[1][0] != "-":
                    yield FileStep(words[1], text=shown, is_shown=True)


def _written(step: ShellStep, heredoc: Heredoc) -> Iterator[FileStep]:
    """The file that `cat > FILE <<EOF` writes or extends."""
    outputs = [each for each in step.redirections if not each[0].startswith("<")]
    if step.words != ("cat",) or len(step.redirections) != 2 or len(outputs) != 1:
        return
    [(operator, path)] = outputs
    if not path or _MEANS_SOMETHING.search(path):
        return
    path, text = path.strip("'\""), heredoc.text
    if text is None:
        yield FileStep(path)
    elif operator == ">":
        yield FileStep(path, text=text)
    elif operator == ">>":
        yield FileStep(
            path,
            change=lambda before: before + text,
            reverse=lambda after: after.removesuffix(text) if after.endswith(text) else None,
        )


def _sed_steps(words: Sequence[str], shown: str | None) -> Iterator[FileStep]:
    if words[1:2] == ["-n"] and len(words) == 4 and (lines := _RANGE.fullmatch(words[2])):
        # Fewer lines than were asked for, from the first one on, are all.
        if shown is not None and shown.count("\n") < int(lines[1]):
            yield FileStep(words[3], text=shown, is_shown=True)
        return
    options = [word for word in words[1:] if word.startswith("-")]
    if not any(re.match(r"-\w*i|--in-place", option) for option in options):
        return
    scripts, files, is_extended = _sed_words(words[1:])
    change = _sed_change(scripts, extended=is_extended)
    for file in files:
        yield FileStep(file, change=change)


def _sed_words(words: Sequence[str]) -> tuple[list[str], list[str], bool]:
    """Scripts and files of a `sed -i`, and whether patterns are extended."""
    scripts: list[str] = []
    others: list[str] = []
    is_extended, rest = False, iter(words)
    for word in rest:
        if word == "":
            continue  # macOS: the suffix of a copy, which is none
        if re.fullmatch(r"-\w*e|--expression", word):
            scripts.append(next(rest, ""))
        elif word.startswith("-"):
            is_extended |= bool(re.match(r"-\w*[Er]|--regexp-extended", word))
        else:
            others.append(word)
    return (scripts, others, is_extended) if scripts else (others[:1], others[1:], is_extended)


def _plain(step: ShellStep, *, quoted: bool = False) -> list[str]:
    """A step's words without quotes; none if the shell would expand one.

    `quoted`: words in quotes may hold shell characters.
    """
    command = " ".join(step.words)
    bare = re.sub(r"'[^']*'|\"[^\"$`\\]*\"", "", command) if quoted else command
    if step.redirections or _MEANS_SOMETHING.search(bare):
        return []
    try:
        return shlex.split(command)
    except ValueError:
        return []


MOST_CHARS = 5_000_000
"""Longest text for a recorded `sed`, which could double it again and again."""
MOST_SEARCHED = 2000
"""Characters of a line searched for repetitions."""
_REPEATS = re.compile(r"(?<!\\)(?:\*|\+|\{\d*,\d*\})")
_REPEATED_GROUP = re.compile(r"(?<!\\)\)[*+?{]")


class _TooMuch(Exception):
    pass


_SUBSTITUTION = re.compile(r"(?:(\d+)(?:,(\d+|\$))?)?s(.)", re.DOTALL)
_DELETION = re.compile(r"(\d+)(?:,(\d+|\$))?d")


def _sed_change(scripts: Sequence[str], *, extended: bool) -> Change | None:
    edits: list[Callable[[int, int, str], str | None]] = []
    for script in scripts:
        edit = _sed_edit(script.strip().rstrip(";"), extended=extended)
        if edit is None:
            return None
        edits.append(edit)
    if not edits:
        return None

    def change(text: str) -> str | None:
        lines = text.splitlines(keepends=True)
        done: list[str] = []
        left = MOST_CHARS
        for number, line in enumerate(lines, 1):
            end = "\n" if line.endswith("\n") else ""
            current: str | None = line.removesuffix("\n")
            try:
                for edit in edits:
                    current = None if current is None else edit(number, len(lines), current)
            except _TooMuch:
                return None
            left -= len(current or "")
            if left < 0:
                return None
            done += [] if current is None else [current + end]
        return "".join(done)

    return change


def _sed_edit(script: str, *, extended: bool) -> Callable[[int, int, str], str | None] | None:
    if (deletion := _DELETION.fullmatch(script)) is not None:
        first, last = deletion[1], deletion[2]
        return lambda number, count, line: None if _within(number, count, first, last) else line
    start = _SUBSTITUTION.match(script)
    if start is None:
        return None
    parts = re.split(rf"(?<!\\){re.escape(start[3])}", script[start.end() :])
    if len(parts) != 3 or not re.fullmatch(r"[gI]*", parts[2]):
        return None
    mark = start[3]
    pattern, new = (part.replace(f"\\{mark}", mark) for part in parts[:2])
    expression = _expression(pattern, extended=extended, flags=parts[2])
    replacement = _replacement(new)
    if expression is None or replacement is None:
        return None
    most = 0 if "g" in parts[2] else 1
    longest = MOST_CHARS // max(1, len(replacement))
    if _REPEATS.search(expression.pattern):
        longest = min(longest, MOST_SEARCHED)
    begin, end = start[1], start[2]

    def edit(number: int, count: int, line: str) -> str | None:
        if begin and not _within(number, count, begin, end):
            return line
        if len(line) > longest:
            raise _TooMuch
        return expression.sub(replacement, line, count=most)

    return edit


def _within(number: int, count: int, first: str, last: str | None) -> bool:
    end = count if last == "$" else int(last or first)
    return int(first) <= number <= max(end, int(first))


def _expression(pattern: str, *, extended: bool, flags: str) -> re.Pattern[str] | None:
    if re.search(r"\[\[?:|\\[^.*^$\[\]\\/(){}+?|&'\"#@,!=<>:; -]", pattern) or not pattern:
        return None
    if not extended:
        # Brackets and signs of repetition mean something with a backslash, not without.
        pattern = re.sub(r"\\?[(){}+?|]", lambda m: m[0][1:] or f"\\{m[0]}", pattern)
        pattern = re.sub(r"\A(\^?)\*", r"\1\\*", pattern)
    if "\\<" in pattern or "\\>" in pattern:
        return None
    # What a session file says decides for how long its reader searches.
    if len(_REPEATS.findall(pattern)) > 1 or _REPEATED_GROUP.search(pattern):
        return None
    try:
        return re.compile(pattern, re.IGNORECASE if "I" in flags else 0)
    except re.error:
        return None


def _replacement(new: str) -> str | None:
    if re.search(r"\\[^\d&\\n/.\"'#@,!=:;|(){}\[\]$*^ -]", new):
        return None
    token = re.compile(r"\\(\d)|\\(n)|\\(.)|(&)|([^\\&]+)|\\", re.DOTALL)
    parts = []
    for m in token.finditer(new):
        if m[1]:
            parts.append(f"\\g<{m[1]}>")
        elif m[2]:
            parts.append("\n")
        elif m[4]:
            parts.append("\\g<0>")
        else:
            parts.append((m[3] or m[5] or "").replace("\\", "\\\\"))
    return "".join(parts)
