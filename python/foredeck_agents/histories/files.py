"""Versions of files by what a history's tools, commands and patches have shown and written.

`foredeck history` and `blame` join those of several sessions by path and time.
"""

from __future__ import annotations

import os.path
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from foredeck.commands import Heredoc, ShellStep, joined, split_cd, steps
from foredeck.context.messages.items import Block, Item
from foredeck.context.messages.shape import Message
from foredeck.context.state.objects import Objects
from foredeck.model.documents import FileDocument, Generator, Provenance, identity_hash
from foredeck.model.sources import HistorySource
from foredeck.sources.recorded import whole_text
from foredeck.sources.snapshots import AT_MS, SHOWN_BY, TOOL_CALL, ToolEvent, file_type_of
from foredeck.sources.tool_calls import Edit, apply_edits, edits_of, path_argument
from foredeck_agents.histories.tools import Hunk, in_pis_tools, patched, patches_in, unpatched

MAX_CHARS = 2 * 1024 * 1024
"""Of a file that gets versions."""
LINES_SHOWN, LINE_SHOWN = 2000, 2000
"""Lines, and characters of a line, that Claude Code shows of a file."""

_NUMBERED = re.compile(r" *(\d+)(?:→|\t)(.*)", re.DOTALL)
_REMINDER = re.compile(r"\n*<system-reminder>.*</system-reminder>\s*\Z", re.DOTALL)


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


class HistoryFiles:
    """Stores the files of one session's calls."""

    def __init__(self, objects: Objects, commit: Callable[[], None]) -> None:
        self._objects = objects
        self._commit = commit
        self._patches: dict[str, list[tuple[FileStep, str, int]]] = {}
        """Patches by file since its text was last known; empty after a change that cannot be
        undone."""

    def take(
        self,
        result: Item,
        answer: Message | None,
        tool_call: str,
        *,
        before: str | None = None,
        again: bool = False,
    ) -> None:
        """Stores the files that a call and its nested calls have shown or changed.

        `before`: a file's text before an edit; `again`: the result was read before.
        """
        info = self._objects.info
        asked = _call_of(result, answer)
        if asked is not None and asked["name"] in CODEX_TOOLS:
            steps = codex_steps(asked, result.text, info.cwd)
            if not (again and self._is_taken(tool_call, (step.path for step in steps))):
                for step in steps:
                    self._follow(step, tool_call, result.time_ms)
            return
        calls = [(call, _path(call, info.cwd)) for call in _calls_of(result, asked)]
        on_files = [(call, path, self._id(path)) for call, path in calls if path is not None]
        if again and self._is_taken(tool_call, (path for _, path, _ in on_files)):
            return
        for call, path, id in on_files:
            # Nobody has kept what a call of a script's has shown.
            shown = result.text if call.get("id") == result.call_id else None
            for text, generator in self._texts(call, shown, before, id):
                self._put(path, text, generator, tool_call, result.time_ms)

    def _id(self, path: str) -> str:
        return _source_and_id(self._objects.info.id, path)[1]

    def _is_taken(self, tool_call: str, paths: Iterable[str]) -> bool:
        ids = {self._id(path) for path in paths}
        history = self._objects.store.history
        return any(_is_by(tool_call, head.fields) for id in ids for head in history(id))

    def _follow(self, step: FileStep, tool_call: str, at_ms: int) -> None:
        """Stores what a command or patch of Codex's has made or shown of a file."""
        path, id = step.path, self._id(step.path)
        if step.text is not None:
            text = step.text
            if step.is_shown:
                shown = self._text(id) or ""
                # An output may have lost its last line end.
                text = shown if shown.rstrip("\n") == text.rstrip("\n") else text
                self._take_back(path, text)
            self._put(path, text, "system" if step.is_shown else "agent", tool_call, at_ms)
            self._patches.pop(id, None)
            return
        from_id = id if step.before is None else self._id(step.before)
        known = None if from_id in self._patches else self._text(from_id)
        after = None if known is None or step.change is None else step.change(known)
        if known is not None and after is not None:
            # A file that was moved is not all the agent's.
            self._put(path, known, "system", tool_call, at_ms)
            self._put(path, after, "agent", tool_call, at_ms)
            return
        waiting = self._patches.setdefault(id, [])
        if step.reverse is None or step.before is not None:
            waiting.clear()
        else:
            waiting.append((step, tool_call, at_ms))

    def _take_back(self, path: str, text: str) -> None:
        """Stores what a file held between patches, as far as its text now tells."""
        texts = [text]
        waiting = self._patches.get(self._id(path), [])
        for step, _, _ in reversed(waiting):
            before = step.reverse(texts[-1]) if step.reverse is not None else None
            if before is None:
                break
            texts.append(before)
        if len(texts) == 1:
            return
        taken = waiting[-(len(texts) - 1) :]
        self._put(path, texts[-1], "system", *taken[0][1:])
        for (_, tool_call, at_ms), after in zip(taken, reversed(texts[:-1]), strict=True):
            self._put(path, after, "agent", tool_call, at_ms)

    def _texts(
        self, call: Block, shown: str | None, before: str | None, id: str
    ) -> Iterator[tuple[str, Generator]]:
        """The file before an edit, if only the history has that, and now."""
        # A call's files are known from what it says alone. A write, and a read that shows all
        # lines, have the whole text; an edit has it where the text before is known: from such a
        # call, or from the history itself, where it keeps the file as it was.
        if call["name"] != "edit":
            if (text := _whole(call, shown)) is not None:
                if before is not None and call["name"] == "write":
                    yield before, "system"
                yield text, "agent" if call["name"] == "write" else "system"
            return
        for known in (before, self._text(id)):
            after = None if known is None else _edited(known, call["arguments"])
            if known is not None and after is not None:
                yield known, "system"
                yield after, "agent"
                return

    def _text(self, id: str) -> str | None:
        document = self._objects.workspace.pending.get(id) or self._objects.store.get(
            id, FileDocument
        )
        return document.content if isinstance(document, FileDocument) else None

    def _put(self, path: str, text: str, generator: Generator, tool_call: str, at_ms: int) -> None:
        source, id = _source_and_id(self._objects.info.id, path)
        if len(text) > MAX_CHARS or text == self._text(id):
            return
        if id in self._objects.workspace.pending:
            # A transaction holds one version of a document.
            self._commit()
        by = {TOOL_CALL if generator == "agent" else SHOWN_BY: tool_call}
        document = FileDocument(
            id=id,
            source=source,
            file_type=file_type_of(path),
            content=text,
            char_count=len(text),
            provenance=Provenance(
                origin=self._objects.info.origin,
                generator=generator,
                **by,
                **({AT_MS: at_ms} if at_ms else {}),
            ),
        ).seal()
        self._objects.workspace.put(document)
        # Without a label: to the session's agent, the path is that of the file on its disk.
        self._objects.see_document(document)


def _source_and_id(session: str, path: str) -> tuple[HistorySource, str]:
    # What a history says was so at that time, on some machine: it is no version of the file that
    # lies at this path now, and has an id of its own.
    source = HistorySource(session=session, path=path)
    return source, identity_hash("file", source.model_dump())


def _is_by(tool_call: str, fields: Mapping[str, Any]) -> bool:
    provenance = fields.get("provenance") or {}
    return tool_call in (provenance.get(TOOL_CALL), provenance.get(SHOWN_BY))


def _call_of(result: Item, answer: Message | None) -> Block | None:
    blocks = [] if result.failed else (answer or {}).get("content")
    for block in blocks if isinstance(blocks, list) else ():
        if (
            isinstance(block, dict)
            and (block.get("type"), block.get("id")) == ("toolCall", result.call_id)
            and isinstance(block.get("arguments"), dict)
        ):
            return block
    return None


def _calls_of(result: Item, asked: Block | None) -> list[Block]:
    calls = [] if asked is None else [asked]
    calls += [
        {"type": "toolCall", "id": each.id, "name": each.tool, "arguments": each.arguments}
        for each in result.nested
        if not each.failed
    ]
    named: list[Block] = in_pis_tools({"role": "assistant", "content": calls})["content"]
    return [call for call in named if call["name"] in ("read", "write", "edit")]


def _path(call: Block, cwd: str) -> str | None:
    path = path_argument(call["arguments"])
    if path is None or "\0" in path or not (cwd or os.path.isabs(path)):  # noqa: PTH117
        return None
    return os.path.normpath(os.path.join(cwd, path))  # noqa: PTH118


def _whole(call: Block, shown: str | None) -> str | None:
    """The whole text that a read has shown or a write has left."""
    lines = _REMINDER.sub("", shown or "").split("\n")
    if call["name"] == "read" and _NUMBERED.match(lines[0]):
        return _unnumbered(lines, call["arguments"])
    event = ToolEvent(call["name"], call["arguments"], shown or "", is_unheard=shown is None)
    return whole_text(event)


def _unnumbered(lines: Sequence[str], arguments: Mapping[str, Any]) -> str | None:
    limit = arguments.get("limit")
    most = min(limit, LINES_SHOWN) if isinstance(limit, int) else LINES_SHOWN
    matches = [_NUMBERED.fullmatch(line) for line in lines]
    numbers = [int(match[1]) for match in matches if match is not None]
    # As many lines as are shown at most: the file may have more.
    if len(lines) >= most or numbers != [*range(1, len(lines) + 1)]:
        return None
    shown = [match[2] for match in matches if match is not None]
    # A line of this length may have been cut.
    return None if max(map(len, shown)) >= LINE_SHOWN else "\n".join(shown)


def _edited(text: str, arguments: Mapping[str, Any]) -> str | None:
    listed = arguments.get("edits")
    steps = [each for each in listed if isinstance(each, Mapping)] if listed else [arguments]
    if not any("replace_all" in step for step in steps):
        return apply_edits(text, edits_of(arguments))
    # One after the other, as Claude Code applies them; Pi applies all to the text as it was.
    changed: str | None = text
    for step in steps:
        for edit in edits_of(step):
            changed = None if changed is None else _replaced(changed, edit, step)
    return changed


def _replaced(text: str, edit: Edit, step: Mapping[str, Any]) -> str | None:
    if step.get("replace_all") is not True:
        return apply_edits(text, [edit])
    return text.replace(edit.old, edit.new) if edit.old and edit.old in text else None


# What Codex's commands and patches say of files


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
