"""What calls of the host's file tools say of files, without the disk: the paths that they touch,
the lines that a `read` shows, and what an `edit` makes of a text."""

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

from foredeck.sources.snapshots import Role, ToolEvent

WRITERS = frozenset({"edit", "write"})
READERS = frozenset({"read", "grep", "find", "ls"})
"""Tools whose arguments say what they write."""

GUESSES = 64
"""How many words of a `bash` command, and of its output, are taken for paths at most."""

_SCANNED_CHARS = 4000
_NOTICE = re.compile(r"\n\n\[[^\n]*(?:limit reached|truncated to)[^\n]*\]\Z")
_NO_RESULTS = frozenset(
    {"(empty directory)", "No files found matching pattern", "No matches found"}
)
_HIT = re.compile(r"(.+?):\d+: ")
_CONTEXT = re.compile(r".+?-\d+- ")
_UNICODE_SPACES = re.compile("[\u00a0\u2000-\u200a\u202f\u205f\u3000]")
_AM_PM = re.compile(r" (AM|PM)\.", re.IGNORECASE)
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1([^\n]*)\n.*?^\s*\2\s*$", re.DOTALL | re.MULTILINE)
_LEADING_CD = re.compile(r"\s*cd\s+(?:\"([^\"\n]+)\"|'([^'\n]+)'|([^\s;&|\"']+))\s*(?:&&|;|\n)")
_LISTED = re.compile(r"\s*ls(?:\s+-\w+)*\s+([^\s;&|<>\"'$*?~-][^\s;&|<>\"'$*?]*)\s*\Z")
"""A command that lists one folder: its output has the names in that folder."""
_QUOTED = re.compile(r"\"([^\"\n]{1,300})\"|'([^'\n]{1,300})'")
_WORD = re.compile(r"[^\s\"'`;|&<>(){}$=,:*?\[\]!#^\\]+")
_PATH_LIKE = re.compile(r"(?=.*[\w])(?!-)(?!\d+(?:\.\d+)*\Z).{2,300}\Z")
_SYSTEM_FOLDERS = ("/dev/", "/proc/", "/sys/", "/bin/", "/sbin/", "/lib", "/usr/bin/", "/usr/sbin/")


class Touch(NamedTuple):
    """A path that a tool call touched, absolute or relative to the event's `cwd`.

    `certain` is False for a word that may not be a path at all.
    """

    path: str
    role: Role
    certain: bool = True


def touched_paths(event: ToolEvent, limit: int) -> list[Touch]:
    """The paths of a tool call by its arguments and output, each once, that of the arguments first.

    A path that is missed is found when it is read. What `bash` touched is guessed from
    the words of the command and of a short output; the caller keeps those that name a file.

    At most `limit` are taken from the output. An unknown tool counts as mentioning its `path`.
    """
    finder = _FINDERS.get(event.tool) or _subject("mentioned")
    found: dict[str, Touch] = {}
    for touch in finder(event, limit):
        if touch.path and "\0" not in touch.path:
            found.setdefault(touch.path, touch)
    return list(found.values())


def path_argument(arguments: Mapping[str, Any]) -> str | None:
    """The path that a call's arguments name, under any of the names that models use."""
    for name in ("path", "file_path"):
        value = arguments.get(name)
        if isinstance(value, str) and value:
            return tool_path(value)
    return None


def split_cd(command: str) -> tuple[str | None, str]:
    """The folder that a command changes to before anything else, None for none, and the rest."""
    moved = _LEADING_CD.match(command)
    if moved is None:
        return None, command
    return next(filter(None, moved.groups())), command[moved.end() :]


def tool_path(text: str) -> str:
    """A path argument as the host's tools read it: `@` dropped, `~` and `file://` resolved."""
    path = _UNICODE_SPACES.sub(" ", text).removeprefix("@")
    if path.startswith("file://"):
        return unquote(urlsplit(path).path)
    return os.path.expanduser(path) if path == "~" or path.startswith("~/") else path  # noqa: PTH111


def spellings(path: str) -> list[str]:
    """Other forms under which the host's `read` looks for a file that is not there.

    They are those of names that macOS makes: decomposed letters, a curly apostrophe, a narrow
    space before AM or PM.
    """
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

    Usually relative to the folder that was searched; some tools show it from the working folder,
    and a search in one file shows the file's own name.
    """
    folder = posixpath.normpath(searched)
    if folder != "." and not os.path.isabs(folder) and shown.startswith(folder + "/"):  # noqa: PTH117
        return shown
    return searched if posixpath.basename(folder) == shown else _join(searched, shown)


def _join(folder: str, path: str) -> str:
    return path if folder in (".", "./") else posixpath.join(folder, path)


def _listing(place: Callable[[str, str], str]) -> Callable[[ToolEvent, int], Iterator[Touch]]:
    """`place`: where a line of it is, below the folder that was listed."""

    def find(event: ToolEvent, limit: int) -> Iterator[Touch]:
        folder = path_argument(event.input) or "."
        for line in _lines(event, limit):
            if not line.endswith("/"):
                yield Touch(place(folder, line), "listed")

    return find


def _grep(event: ToolEvent, limit: int) -> Iterator[Touch]:
    searched = path_argument(event.input) or "."
    seen: set[str] = set()
    for line in _lines(event, None):
        hit, around = _HIT.match(line), _CONTEXT.match(line)
        if hit is None or (around and event.input.get("context") and around.end() < hit.end()):
            continue
        if hit[1] not in seen and len(seen) < limit:
            seen.add(hit[1])
            yield Touch(_under(searched, hit[1]), "listed")


def _bash(event: ToolEvent, limit: int) -> Iterator[Touch]:
    command = event.input.get("command")
    if not isinstance(command, str):
        return
    command = _HEREDOC.sub(r"\3", command[: 16 * _SCANNED_CHARS])[:_SCANNED_CHARS]
    folder, rest = split_cd(command)
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
    """The lines of a listing, without its notice; none for a failed call or an empty result."""
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
    likely = (w for w in words if _PATH_LIKE.match(w) and not w.startswith(_SYSTEM_FOLDERS))
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
    """Lines `first` to `last` of `total`, counted from 1, and their text without any notice.

    Lines are counted as the host's tool does: a final newline is followed by one more, empty
    line. `last` is `first - 1` where no line is shown, `total` None where the result does not
    tell. `complete` means that `text` is the whole file.
    """

    first: int
    last: int
    total: int | None
    complete: bool
    text: str


def parse_read_range(arguments: Mapping[str, Any], text: str) -> ReadRange | None:
    """The lines that a successful `read` call with these arguments and this result shows.

    None for an image. A last line that only looks like the tool's notice, with numbers that do
    not fit the text, is taken as part of the file.
    """
    if _IMAGE.match(text):
        return None
    first = max(1, _number(arguments.get("offset"), 1))
    long_line = _LONG_LINE.fullmatch(text)
    if long_line and int(long_line["line"]) == first:
        return ReadRange(first, first - 1, None, False, "")
    for notice in (_SHOWING, _MORE, _NOT_SHOWN):
        found = notice.search(text)
        if found:
            shown = _cut(text[: found.start()], first, found)
            if shown:
                return shown
    last = first + text.count("\n")
    if _number(arguments.get("limit"), last + 1) <= last - first + 1:
        # As many lines as were asked for. Of hosts that say nothing of the rest there may be more.
        return ReadRange(first, last, None, False, text)
    return ReadRange(first, last, last, first == 1, text)


def _cut(body: str, first: int, notice: re.Match[str]) -> ReadRange | None:
    """The range before a notice, None if the notice's numbers are not those of the text."""
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
    """A number as models send it; `missing` for what is none."""
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
    """The replacements that an `edit` call asks for, in any of the forms that models send."""
    given = arguments.get("edits")
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            given = None
    items = list(given) if isinstance(given, list) else [given]
    items.append(arguments)
    return [
        Edit(item["oldText"], item["newText"])
        for item in items
        if isinstance(item, Mapping)
        and isinstance(item.get("oldText"), str)
        and isinstance(item.get("newText"), str)
    ]


def written_texts(arguments: Mapping[str, Any]) -> list[str]:
    """What a call of `write` or `edit` puts into its file, text by text; deletions put nothing."""
    content = arguments.get("content")
    texts = [content] if isinstance(content, str) else []
    texts += [edit.new for edit in edits_of(arguments)]
    return [text for text in texts if text.strip()]


def apply_edits(text: str, edits: Sequence[Edit]) -> str | None:
    """The text after these replacements, None where the outcome is not certain.

    Each old text must occur once in the text as it was before the call; replacements must not
    overlap.
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
    """Where the old texts are, in order; None unless each is there once, apart from the others."""
    found: list[_Match] = []
    for old, new in edits:
        if not old or text.count(old) != 1:
            return None
        start = text.index(old)
        found.append(_Match(start, start + len(old), new))
    found.sort()
    apart = all(a.end <= b.start for a, b in pairwise(found))
    return found if apart else None


def _splice(text: str, matches: Sequence[_Match], offset: int = 0) -> str:
    for start, end, new in reversed(matches):
        text = text[: start - offset] + new + text[end - offset :]
    return text


def _splice_lines(text: str, base: str, matches: Sequence[_Match]) -> str | None:
    """Replace in `base`, line by line; lines that no match touches stay as `text` has them."""
    lines, spans = _LINE.findall(text), [m.span() for m in _LINE.finditer(base)]
    if len(lines) != len(spans):
        return None
    parts: list[str] = []
    done = 0
    for first, last, group in _touched_lines(spans, matches):
        start, end = spans[first][0], spans[last][1]
        parts += lines[done:first]
        parts.append(_splice(base[start:end], group, start))
        done = last + 1
    return "".join(parts + lines[done:])


def _touched_lines(
    spans: Sequence[tuple[int, int]], matches: Sequence[_Match]
) -> list[tuple[int, int, list[_Match]]]:
    """`(first line, last line, matches)` for each run of lines that matches touch together."""
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
