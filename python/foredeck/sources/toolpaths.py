"""Which paths a tool call touched, by its arguments and its output, without the disk.

Best effort: a path that is missed is found when it is read. What
`bash` touched is guessed from the words of the command and of a short output, and whoever asks
keeps the guesses that name a file.
"""

from __future__ import annotations

import os
import posixpath
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from foredeck.sources.indexing import Role, ToolEvent

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


@dataclass(frozen=True, slots=True)
class Touch:
    """A path that a tool call touched, absolute or relative to the event's `cwd`.

    `certain` is False for a word that may not be a path at all.
    """

    path: str
    role: Role
    certain: bool = True


def touched_paths(event: ToolEvent, limit: int) -> list[Touch]:
    """The paths of a tool call, the one that its arguments name first, each once.

    At most `limit` are taken from the output. An unknown tool counts as mentioning its `path`.
    """
    finder = _FINDERS.get(event.tool, _other)
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


def _ls(event: ToolEvent, limit: int) -> Iterator[Touch]:
    folder = path_argument(event.input) or "."
    for line in _lines(event, limit):
        if not line.endswith("/"):
            yield Touch(_join(folder, line), "listed")


def _find(event: ToolEvent, limit: int) -> Iterator[Touch]:
    folder = path_argument(event.input) or "."
    for line in _lines(event, limit):
        if not line.endswith("/"):
            yield Touch(_under(folder, line), "listed")


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


def _other(event: ToolEvent, limit: int) -> Iterator[Touch]:
    return _subject("mentioned")(event, limit)


_FINDERS: dict[str, Callable[[ToolEvent, int], Iterator[Touch]]] = {
    "read": _subject("read"),
    "write": _subject("written"),
    "edit": _subject("written"),
    "ls": _ls,
    "find": _find,
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
