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
    if any(re.match(r"-\w*i|--in-place", word) for word in words[1:]):
        # What its script makes of them is not known; a script is no file's name.
        yield from (FileStep(word) for word in words[1:] if word and word[0] != "-")


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
