"""What calls of file tools say of files, without the disk."""

from __future__ import annotations

import json
import os
import posixpath
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from foredeck.commands import split_cd, split_heredocs
from foredeck.sources.snapshots import Role, ToolEvent

WRITERS = frozenset({"edit", "write"})
READERS = frozenset({"read", "grep", "find", "ls"})
"""Tools whose arguments contain what they write."""

GUESSES = 64
"""Most words of a `bash` command and its output taken for paths."""

_SCANNED_CHARS = 4000
_NOTICE = re.compile(r"\n\n\[[^\n]*(?:limit reached|truncated to)[^\n]*\]\Z")
_NO_RESULTS = frozenset(
    {"(empty directory)", "No files found matching pattern", "No matches found"}
)
_HIT = re.compile(r"(.+?):\d+: ")
_CONTEXT = re.compile(r".+?-\d+- ")
_UNICODE_SPACES = re.compile("[\u00a0\u2000-\u200a\u202f\u205f\u3000]")
_AM_PM = re.compile(r" (AM|PM)\.", re.IGNORECASE)
_LISTED = re.compile(r"\s*ls(?:\s+-\w+)*\s+([^\s;&|<>\"'$*?~-][^\s;&|<>\"'$*?]*)\s*\Z")
"""A command that lists one folder."""
_QUOTED = re.compile(r"\"([^\"\n]{1,300})\"|'([^'\n]{1,300})'")
_WORD = re.compile(r"[^\s\"'`;|&<>(){}$=,:*?\[\]!#^\\]+")
_PATH_LIKE = re.compile(r"(?=.*[\w])(?!-)(?!\d+(?:\.\d+)*\Z).{2,300}\Z")
_SYSTEM_FOLDER = re.compile(r"/(?:dev/(?!shm/)|proc/|sys/|s?bin/|lib|usr/s?bin/)")


class Touch(NamedTuple):
    """A touched path; `certain` is False for a word that may be no path."""

    path: str
    role: Role
    certain: bool = True


def touched_paths(event: ToolEvent, limit: int) -> list[Touch]:
    """A tool call's paths, unique, the argument's first.

    Paths of `bash` are guesses; at most `limit` come from its output.
    """
    finder = _FINDERS.get(event.tool) or _subject("mentioned")
    touches: dict[str, Touch] = {}
    for touch in finder(event, limit):
        if touch.path and "\0" not in touch.path:
            touches.setdefault(touch.path, touch)
    return list(touches.values())


def path_argument(arguments: Mapping[str, Any]) -> str | None:
    """The path argument, under any name that models use."""
    for name in ("path", "file_path"):
        value = arguments.get(name)
        if isinstance(value, str) and value:
            return tool_path(value)
    return None


def tool_path(text: str) -> str:
    """A path argument as tools read it: `@` dropped, `~` and `file://` resolved."""
    path = _UNICODE_SPACES.sub(" ", text).removeprefix("@")
    if path.startswith("file://"):
        return unquote(urlsplit(path).path)
    return os.path.expanduser(path) if path == "~" or path.startswith("~/") else path  # noqa: PTH111


def spellings(path: str) -> list[str]:
    """Other spellings that `read` tries: macOS's decomposed letters, curly apostrophe, narrow space
    before AM or PM."""
    decomposed = unicodedata.normalize("NFD", path)
    forms = (
        _AM_PM.sub("\u202f\\1.", path),
        decomposed,
        path.replace("'", "\u2019"),
        decomposed.replace("'", "\u2019"),
    )
    return [form for form in dict.fromkeys(forms) if form != path]


def _subject(role: Role) -> Callable[[ToolEvent, int], Iterator[Touch]]:
    def find(event: ToolEvent, _limit: int) -> Iterator[Touch]:
        path = path_argument(event.input)
        if path:
            yield Touch(path, "mentioned" if event.is_error else role)

    return find


def _under(searched: str, shown: str) -> str:
    """The path of a search result.

    Relative to the searched folder; in some tools to the working folder; or the searched file's
    name.
    """
    folder = posixpath.normpath(searched)
    if folder != "." and not os.path.isabs(folder) and shown.startswith(folder + "/"):  # noqa: PTH117
        return shown
    return searched if posixpath.basename(folder) == shown else _join(searched, shown)


def _join(folder: str, path: str) -> str:
    return path if folder in (".", "./") else posixpath.join(folder, path)


def _listing(place: Callable[[str, str], str]) -> Callable[[ToolEvent, int], Iterator[Touch]]:
    """`place` turns a line into a path below the listed folder."""

    def find(event: ToolEvent, limit: int) -> Iterator[Touch]:
        folder = path_argument(event.input) or "."
        for line in _lines(event, limit):
            if not line.endswith("/"):
                yield Touch(place(folder, line), "listed")

    return find


def _grep(event: ToolEvent, limit: int) -> Iterator[Touch]:
    searched = path_argument(event.input) or "."
    paths: set[str] = set()
    for line in _lines(event, None):
        hit, around = _HIT.match(line), _CONTEXT.match(line)
        if hit is None or (around and event.input.get("context") and around.end() < hit.end()):
            continue
        if hit[1] not in paths and len(paths) < limit:
            paths.add(hit[1])
            yield Touch(_under(searched, hit[1]), "listed")


def _bash(event: ToolEvent, limit: int) -> Iterator[Touch]:
    command = event.input.get("command")
    if not isinstance(command, str):
        return
    command, _ = split_heredocs(command[: 16 * _SCANNED_CHARS])
    folder, rest = split_cd(command[:_SCANNED_CHARS])
    here = tool_path(folder or ".")
    texts = [(here, rest)]
    if len(event.text) <= _SCANNED_CHARS:
        listed = _LISTED.match(rest)
        texts.append((here if listed is None else _join(here, tool_path(listed[1])), event.text))
    for place, text in texts:
        for word in _guesses(text, min(GUESSES, limit)):
            yield Touch(_join(place, tool_path(word)), "mentioned", certain=False)


_FINDERS: dict[str, Callable[[ToolEvent, int], Iterator[Touch]]] = {
    "read": _subject("read"),
    "write": _subject("written"),
    "edit": _subject("written"),
    "ls": _listing(_join),
    "find": _listing(_under),
    "grep": _grep,
    "multi_grep": _grep,
    "bash": _bash,
    "exec": _bash,
    "powershell": _bash,
}


def _lines(event: ToolEvent, limit: int | None) -> list[str]:
    """A listing's lines without notice; none for a failure."""
    text = event.text.strip("\n")
    if event.is_error or text in _NO_RESULTS:
        return []
    lines = _NOTICE.sub("", text).split("\n")
    return [line for line in lines[:limit] if line]


def _guesses(text: str, limit: int) -> list[str]:
    if limit <= 0:
        return []
    words: dict[str, None] = {}
    for quoted in _QUOTED.finditer(text):
        inner = quoted[1] or quoted[2]
        if " " in inner and ("." in inner or "/" in inner):
            words.setdefault(inner)
    for word in _WORD.findall(text):
        words.setdefault(word.rstrip(".,"))
    likely = (w for w in words if _PATH_LIKE.match(w) and not _SYSTEM_FOLDER.match(w))
    return [word for word, _ in zip(likely, range(limit), strict=False)]


# The notices below a part of a file, by hosts and their versions.
_SHOWING = re.compile(
    r"\n\n\[Showing lines (?P<first>\d+)-(?P<last>\d+) of (?P<total>\d+)(?: \([^()\n]* limit\))?"
    r"\. Use offset=(?P<next>\d+) to continue\.?\]\Z"
)
_MORE = re.compile(
    r"\n\n\[(?P<more>\d+) more lines in file\. Use offset=(?P<next>\d+) to continue\.?\]\Z"
)
_NOT_SHOWN = re.compile(
    r"\n\n\.\.\. \((?P<more>\d+) more lines not shown\. "
    r"Use offset=(?P<next>\d+) to continue reading\)\Z"
)
_LONG_LINE = re.compile(r"\[Line (?P<line>\d+) is [\d.]+[KM]?B, exceeds [\d.]+[KM]?B limit\. .*\]")
_IMAGE = re.compile(r"Read image file \[image/[\w.+-]+\](?:\n|\Z)")


class ReadRange(NamedTuple):
    """Lines `first` to `last` of `total`, from 1, with their text.

    A final newline begins an empty line, as for the host; `last` is `first - 1` without lines.
    """

    first: int
    last: int
    total: int | None
    complete: bool
    text: str


def parse_read_range(arguments: Mapping[str, Any], text: str) -> ReadRange | None:
    """The lines that a successful `read` shows; None for an image.

    A final line like a notice with wrong numbers counts as text.
    """
    if _IMAGE.match(text):
        return None
    first = max(1, _number(arguments.get("offset"), 1))
    long_line = _LONG_LINE.fullmatch(text)
    if long_line and int(long_line["line"]) == first:
        return ReadRange(first, first - 1, None, False, "")
    for notice in (_SHOWING, _MORE, _NOT_SHOWN):
        match = notice.search(text)
        if match:
            lines = _cut(text[: match.start()], first, match)
            if lines:
                return lines
    last = first + text.count("\n")
    if _number(arguments.get("limit"), last + 1) <= last - first + 1:
        # As many lines as were asked for. Of hosts that say nothing of the rest there may be more.
        return ReadRange(first, last, None, False, text)
    return ReadRange(first, last, last, first == 1, text)


def _cut(body: str, first: int, notice: re.Match[str]) -> ReadRange | None:
    """The range before a notice; None if its numbers do not fit."""
    after = int(notice["next"])
    lines = body.count("\n") + 1
    if body == "" and after == first:
        lines = 0
    if first + lines != after:
        return None
    last = after - 1
    numbers = notice.groupdict()
    total = int(numbers["total"]) if "total" in numbers else last + int(numbers["more"])
    return ReadRange(first, last, total, False, body)


def _number(value: Any, missing: int) -> int:
    """A number as models send it, or `missing`."""
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return missing
    return int(value)


BOM = "\ufeff"

_TRAILING = "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00a0\u202f\u205f\u3000", " "),
        **dict.fromkeys(map(chr, range(0x2002, 0x200B)), " "),
    }
)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


class Edit(NamedTuple):
    """One replacement."""

    old: str
    new: str


class _Match(NamedTuple):
    start: int
    end: int
    new: str


def edits_of(arguments: Mapping[str, Any]) -> list[Edit]:
    """The replacements of an `edit`, in any form that models send."""
    raw = arguments.get("edits")
    if isinstance(raw, str):
        try:
            raw = json.loads(raw)
        except ValueError:
            raw = None
    items = list(raw) if isinstance(raw, list) else [raw]
    items.append(arguments)
    return [
        Edit(item["oldText"], item["newText"])
        for item in items
        if isinstance(item, Mapping)
        and isinstance(item.get("oldText"), str)
        and isinstance(item.get("newText"), str)
    ]


def written_texts(arguments: Mapping[str, Any]) -> list[str]:
    """Texts that a `write` or `edit` puts into its file."""
    content = arguments.get("content")
    texts = [content] if isinstance(content, str) else []
    texts += [edit.new for edit in edits_of(arguments)]
    return [text for text in texts if text.strip()]


def apply_edits(text: str, edits: Sequence[Edit]) -> str | None:
    """The text after replacements; None if uncertain.

    Each old text must occur once in the original, without overlap.
    """
    bom, body = (BOM, text[1:]) if text.startswith(BOM) else ("", text)
    crlf = "\r" in body
    # Versions of the host differ on mixed line endings.
    if crlf and body.replace("\r\n", "").count("\r") + body.replace("\r\n", "").count("\n"):
        return None
    plain = [Edit(_unix(old), _unix(new)) for old, new in edits]
    if not plain or any(not edit.old for edit in plain):
        return None
    result = _replace(_unix(body), plain)
    if result is None:
        return None
    return bom + (result.replace("\n", "\r\n") if crlf else result)


def _replace(text: str, edits: Sequence[Edit]) -> str | None:
    if all(edit.old in text for edit in edits):
        matches = _matches(text, edits)
        return None if matches is None else _splice(text, matches)
    # As the host's tool does it: if an old text is not there letter by letter, typographic variants
    # and trailing white space match, and only the lines that are touched take on the plain form.
    base = _fuzzy(text)
    matches = _matches(base, [Edit(old if old in base else _fuzzy(old), new) for old, new in edits])
    return None if matches is None else _splice_lines(text, base, matches)


def _matches(text: str, edits: Sequence[Edit]) -> list[_Match] | None:
    """Places of the old texts in order; None unless each occurs once, apart from the others."""
    matches: list[_Match] = []
    for old, new in edits:
        if not old or text.count(old) != 1:
            return None
        start = text.index(old)
        matches.append(_Match(start, start + len(old), new))
    matches.sort()
    apart = all(a.end <= b.start for a, b in pairwise(matches))
    return matches if apart else None


def _splice(text: str, matches: Sequence[_Match], offset: int = 0) -> str:
    for start, end, new in reversed(matches):
        text = text[: start - offset] + new + text[end - offset :]
    return text


def _splice_lines(text: str, base: str, matches: Sequence[_Match]) -> str | None:
    """Replaces in `base` by lines; untouched lines stay as in `text`."""
    lines, spans = _LINE.findall(text), [m.span() for m in _LINE.finditer(base)]
    if len(lines) != len(spans):
        return None
    parts: list[str] = []
    position = 0
    for first, last, group in _touched_lines(spans, matches):
        start, end = spans[first][0], spans[last][1]
        parts += lines[position:first]
        parts.append(_splice(base[start:end], group, start))
        position = last + 1
    return "".join(parts + lines[position:])


def _touched_lines(
    spans: Sequence[tuple[int, int]], matches: Sequence[_Match]
) -> list[tuple[int, int, list[_Match]]]:
    """`(first line, last line, matches)` per run of touched lines."""
    groups: list[tuple[int, int, list[_Match]]] = []
    for match in matches:
        first = next(i for i, (_, end) in enumerate(spans) if match.start < end)
        last = next(i for i, (_, end) in enumerate(spans) if match.end <= end)
        if groups and first <= groups[-1][1]:
            start, end, together = groups[-1]
            groups[-1] = (start, max(end, last), [*together, match])
        else:
            groups.append((first, last, [match]))
    return groups


def _fuzzy(text: str) -> str:
    lines = unicodedata.normalize("NFKC", text).split("\n")
    return "\n".join(line.rstrip(_TRAILING) for line in lines).translate(_PLAIN)


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
