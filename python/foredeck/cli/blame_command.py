"""`foredeck blame`: which prompt wrote each line of a file."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from foredeck.cli.output import answer, coloured, table
from foredeck.cli.registry import load
from foredeck.cli.stored import opened_store
from foredeck.errors import ForedeckError, NotFound, ToolError
from foredeck.lookup.objects import versions_until_now
from foredeck.model.figures import when
from foredeck.model.identity import sha256_hex
from foredeck.names import Found, find_object, name_of
from foredeck.regular_files import read_regular
from foredeck.sources.git import repository
from foredeck.sources.looking import decode
from foredeck.store.protocol import Head
from foredeck.store.store import Store
from foredeck.timeline.blame import Author, BlamedLine, blame, equal_runs

SHOWN_ID = 13
_OF_AUTHOR = ("by", "session", "call", "tool", "tool_call", "model", "agent")

MOST_BYTES = 64 * 1024 * 1024
"""Of a file whose lines are blamed."""

_LINES = re.compile(r"(?P<file>.+?):(?P<first>\d+)(?:-(?P<last>\d+))?")


def run(args: Namespace) -> int:
    """`foredeck blame`."""
    name, first, last = _asked(args.file)
    with opened_store(args) as store:
        object = find_object(store, name)
        versions = _versions(store, object)
        lines = blame(store, versions, _unstored(object, versions))
    commits = _commits(object, [line.text for line in lines])
    selection = lines[first - 1 : last]
    if not selection:
        raise NotFound(f"{object.name} has {len(lines)} lines, no line {first}.")
    if args.prompt:
        return _show_prompt(args, object, selection[0])
    described = [_line_json(line, commits) for line in selection]
    value = {"object": object.id, "path": object.path, "lines": described}
    return answer(args, value, lambda: table([*_rows(selection, commits)]))


def _asked(text: str) -> tuple[str, int, int | None]:
    # A file may be called `notes:12`.
    match = None if Path(text).exists() else _LINES.fullmatch(text)
    if match is None:
        return text, 1, None
    first = int(match["first"])
    last = int(match["last"] or first)
    if first < 1 or last < first:
        raise NotFound(f"there are no lines {first} to {last}: they count from 1, upwards.")
    return match["file"], first, last


def _versions(store: Store, found: Found) -> list[Head]:
    if found.head.type != "file":
        raise ForedeckError(f"{found.name} is a {found.head.type}: only files have lines to blame.")
    fields = found.head.fields
    if moved := fields.get("moved_to"):
        raise ForedeckError(f"{found.name} was renamed: `foredeck blame {_path(store, moved)}`.")
    if fields.get("text_hash") is None:
        state = fields.get("state")
        raise ForedeckError(f"{found.name} has no text now ({state}); `foredeck history` lists it.")
    return versions_until_now(store, found)


def _path(store: Store, object: str) -> str:
    head = store.head(object)
    return object if head is None else name_of(head)


def _unstored(found: Found, versions: Sequence[Head]) -> str | None:
    """The file's text on the disk; None if stored already, or no text."""
    try:
        raw = read_regular(found.path or "", MOST_BYTES)
    except OSError:
        return None
    if sha256_hex(raw) == versions[-1].fields.get("source_hash"):
        return None
    return decode(raw)


def _commits(found: Found, lines: Sequence[str]) -> dict[int, str]:
    path = Path(found.path or "")
    if not path.is_file():
        return {}
    try:
        with repository(str(path.parent)) as opened:
            blamed = opened.blamed(path.name)
    except ToolError:
        return {}
    # git may have changed line ends when it checked the file out.
    committed = [text.rstrip("\r") for _, text in blamed]
    runs = equal_runs(committed, [text.rstrip("\r") for text in lines])
    return {
        into + offset + 1: blamed[at + offset][0]
        for at, into, size in runs
        for offset in range(size)
    }


def _show_prompt(args: Namespace, found: Found, line: BlamedLine) -> int:
    author = line.author
    if author.session is None or author.call is None:
        raise NotFound(f"line {line.number} of {found.name} has no prompt: {_who(author)}.")
    call_args = Namespace(**{**vars(args), "session": author.session, "call": author.call})
    call_args.at, call_args.sets, call_args.branches = None, False, False
    return load("show").run(call_args)


def _rows(lines: Sequence[BlamedLine], commits: dict[int, str]) -> Iterator[tuple[str, ...]]:
    """One row per line; only the first of several lines names their author."""
    with_commits, width = bool(commits), len(str(lines[-1].number))
    head = ("who", "when", *(["commit"] if with_commits else []), "line")
    yield head
    for (author, commit), group in groupby(
        lines, key=lambda line: (line.author, commits.get(line.number, ""))
    ):
        who, at = _who(author), when(author.time_ms) if author.time_ms else "-"
        for position, line in enumerate(group):
            author_cells = (who, at, *([commit[:10]] if with_commits else []))
            cells = author_cells if position == 0 else ("",) * len(author_cells)
            number = coloured(f"{line.number:>{width}}", "dim")
            yield (*cells, f"{number} {line.text}")


def _who(author: Author) -> str:
    if author.name is not None or author.session is None:
        return author.name or ""
    call = "a call" if author.call is None else f"call {author.call}"
    by = ", ".join(filter(None, ("" if author.agent == "pi" else author.agent, author.model)))
    return f"{author.session[:SHOWN_ID]} {call} {author.tool}{f' ({by})' if by else ''}"


def _line_json(line: BlamedLine, commits: dict[int, str]) -> dict[str, Any]:
    author = line.author
    return {
        "line": line.number,
        "text": line.text,
        "first_version": author.first,
        "time_ms": author.time_ms or None,
        **{name: getattr(author, name) for name in _OF_AUTHOR},
        "commit": commits.get(line.number),
    }
