from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

from foredeck.commands import (
    ToolOutput,
    error_facts,
    install_facts,
    plain_count,
    programs,
    test_facts,
)
from foredeck.model.figures import cut
from foredeck.model.names import identifiers, words_of_names
from foredeck.model.quoting import block, one_line

MAX_FILES = 4

_HIT = re.compile(r"\n(?!\d+:)([^:\n]+):\d+:")

_LONG = re.compile(r"^[-dlbcps][-rwxsStT]{9}\S*(?: +\S+){7} ")

_LINE = re.compile(r"^(\d+):", re.MULTILINE)

MAX_LINES = 12


def search_facts(arguments: Mapping[str, Any], output: ToolOutput) -> list[str]:
    """`12 hits in 3 files: a.ts 8, b.ts 3, c.ts 1`."""
    del arguments
    files = Counter(name.removeprefix("./") for name in _HIT.findall(f"\n{output.body}"))
    if files:
        return [f"{plain_count(files.total(), 'hit')} in {_most(files, 'file')}"]
    lines = _LINE.findall(output.body)
    if not lines:
        return []
    more = " ..." if len(lines) > MAX_LINES else ""
    return [f"{plain_count(len(lines), 'hit')} at {' '.join(lines[:MAX_LINES])}{more}"]


def listing_facts(arguments: Mapping[str, Any], output: ToolOutput) -> list[str]:
    """`40 paths in 6 folders: src 20, test 9, ...`."""
    del arguments
    lines = (_LONG.sub("", line) for line in output.body.split("\n") if not line.endswith(":"))
    paths = [line.partition(" -> ")[0].removeprefix("./").rstrip("/") for line in lines]
    folders = Counter(path.rpartition("/")[0] for path in paths if "/" in path)
    if not folders:
        return []
    return [f"{plain_count(folders.total(), 'path')} in {_most(folders, 'folder')}"]


def _most(found: Counter[str], noun: str) -> str:
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    listed = ", ".join(f"{name} {count}" for name, count in ranked[:MAX_FILES])
    return f"{plain_count(len(found), noun)}: {listed}{', ...' if len(ranked) > MAX_FILES else ''}"


_DEFINES = re.compile(
    # A line break to begin with is found faster than the beginning of a line.
    r"\n[ \t]{0,4}(?:export\s+)?(?:default\s+)?(?:public\s+|private\s+|pub\s+)?"
    r"(?:async\s+)?(?:static\s+)?"
    r"(?:def|class|function|func|fn|interface|type|struct|enum|trait|impl)\s+(?:\([^)]*\)\s*)?"
    r"([A-Za-z_]\w*)"
)

_HEADING = re.compile(r"^#{1,3} +(.{2,60}?) *#*$", re.MULTILINE)

_MARKDOWN = re.compile(r"\.(?:md|markdown|mdx)\b", re.IGNORECASE)

MAX_NAMES = 8


def file_facts(arguments: Mapping[str, Any], output: ToolOutput) -> list[str]:
    """`defines: a, b, c`, `headings: ...`, or JSON keys."""
    path = str(arguments.get("path") or arguments.get("file_path") or "")
    return text_facts(path, output.body)


def text_facts(path: str, text: str) -> list[str]:
    """The facts of a text; `path` may be words that contain its path."""
    if _MARKDOWN.search(path):
        return _named("headings", _HEADING.findall(text))
    return json_facts(text) or _named("defines", _DEFINES.findall(f"\n{text}"))


def json_facts(text: str) -> list[str]:
    """`JSON keys: ...`, `JSON array of 35: ...` or `35 JSON lines: ...`."""
    if not text.startswith(("{", "[")):
        return []
    try:
        value = json.loads(text)
    except ValueError:
        return _json_lines(text.strip().split("\n"))
    if isinstance(value, dict):
        return _named("JSON keys", value)
    if not isinstance(value, list) or not value:
        return []
    first = value[0] if isinstance(value[0], dict) else {}
    label = f"JSON array of {len(value)}"
    return _named(label, first) or [label]


def _json_lines(lines: list[str]) -> list[str]:
    try:
        first = json.loads(lines[0])
    except ValueError:
        return []
    if len(lines) < 2 or not isinstance(first, dict) or not lines[1].startswith("{"):
        return []
    return _named(f"{len(lines)} JSON lines", first)


def _named(what: str, names: Iterable[str]) -> list[str]:
    unique = list(dict.fromkeys(map(str, names)))
    if not unique:
        return []
    more = f", and {len(unique) - MAX_NAMES} more" if len(unique) > MAX_NAMES else ""
    return [f"{what}: {', '.join(unique[:MAX_NAMES])}{more}"]


_PYTHON = re.compile(
    r"^( *)Traceback \(most recent call last\):\n((?:\1 .*\n|\1$\n?)+)\1(\S.*)", re.MULTILINE
)

_PYTHON_FRAME = re.compile(r'File "([^"\n]+)", line (\d+)')

_NODE = re.compile(
    r"^(?:Uncaught |Exception in thread \S+ )?([\w.]*(?:Error|Exception)\b.*)\n"
    r"((?: +at .*(?:\n|\Z))+)",
    re.MULTILINE,
)

_NODE_FRAME = re.compile(r"\(?(?:file://)?([^\s()]+):(\d+):\d+\)?$", re.MULTILINE)

_JAVA_FRAME = re.compile(r"at [\w.$]+\(([\w$]+\.\w+):(\d+)\)")

_GO = re.compile(r"^(panic: .*)\n(?:.*\n)*?\t(\S+):(\d+)", re.MULTILINE)

_RUST = re.compile(r"panicked at (?:'(.*)', )?([^\s:]+):(\d+):\d+:?(?:\n(.*))?")

_LIBRARY = re.compile(r"site-packages|node_modules|node:|/lib/python|<frozen|/usr/lib/|/usr/local/")

LINE_CHARS = 120


def trace_facts(text: str) -> list[str]:
    """`KeyError: 'x' at app/load.py:12`, of the last trace."""
    return [
        f"{cut(what, LINE_CHARS)} at {where}" if where else cut(what, LINE_CHARS)
        for what, where in _found(text)
    ]


def _found(text: str) -> Iterator[tuple[str, str]]:
    if "Traceback (most" in text and (last := _last(_PYTHON, text)):
        yield last[3], _own(_PYTHON_FRAME.findall(last[2])[::-1])
    elif "\n    at " in text or "\n\tat " in text or "\n   at " in text:
        last = _last(_NODE, text.replace("\n\tat ", "\n    at "))
        if last:
            frames = _NODE_FRAME.findall(last[2]) or _JAVA_FRAME.findall(last[2])
            yield last[1], _own(frames)
    elif "panic: " in text and (last := _last(_GO, text)):
        yield last[1], f"{last[2]}:{last[3]}"
    elif "panicked at " in text and (last := _last(_RUST, text)):
        yield f"panic: {last[1] or last[4] or ''}".rstrip(), f"{last[2]}:{last[3]}"


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return next(reversed(list(pattern.finditer(text))), None)


def _own(frames: list[tuple[str, str]]) -> str:
    own = (frame for frame in frames if not _LIBRARY.search(frame[0]))
    return ":".join(next(own, frames[0])) if frames else ""


_BRANCH = re.compile(
    r"^(?:On branch|## )\s*([^\s.]+(?:\.[^\s.]+)*)|^(HEAD detached at \S+)", re.MULTILINE
)

_APART = re.compile(r"(ahead|behind)(?: of '[^'\n]*' by)? (\d+)")

_DIVERGED = re.compile(r"have (\d+) and (\d+) different commits")

_STATUS = re.compile(r"^\t(new file|modified|deleted|renamed|both \w+|typechange): ", re.MULTILINE)

_SHORT_STATUS = re.compile(r"^([ MADRCU?]{2}) \S", re.MULTILINE)

_LETTERS = {"M": "modified", "A": "new", "D": "deleted", "R": "renamed", "U": "unmerged"}

_UNTRACKED = re.compile(r"^Untracked files:\n(?:  \(.*\n)?((?:\t.*\n?)*)", re.MULTILINE)

_FILE = re.compile(r"^diff --git a/(\S+)", re.MULTILINE)

_COMMIT = re.compile(r"^(?:\* )?commit ([0-9a-f]{7,40})\b", re.MULTILINE)

_SUBJECT = re.compile(r"^    (\S.*)$", re.MULTILINE)

_ONELINE = re.compile(r"^(?:[*|/\\ ]+ )?([0-9a-f]{7,40}) (\S.*)$", re.MULTILINE)

_STAT = re.compile(r"^ (\d+ files? changed.*)$", re.MULTILINE)

SUBJECT_CHARS = 60


def status_facts(text: str) -> list[str]:
    kinds = Counter(kind.removesuffix(" file") for kind in _STATUS.findall(text))
    for letters in _SHORT_STATUS.findall(text):
        kind = "untracked" if "?" in letters else _LETTERS.get(letters.strip()[:1], "changed")
        kinds[kind] += 1
    for listed in _UNTRACKED.findall(text):
        kinds["untracked"] += listed.count("\t")
    branch = _BRANCH.search(text)
    if branch is None and not kinds:
        return []
    where = [] if branch is None else [branch[2] or f"on {branch[1]}"]
    where += [f"{way} {count}" for way, count in _APART.findall(text)]
    where += [f"{ours} ahead, {theirs} behind" for ours, theirs in _DIVERGED.findall(text)]
    changes = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "clean"
    return [": ".join(part for part in (", ".join(where), changes) if part)]


def diff_facts(text: str) -> list[str]:
    """`2 files: a.ts +12 -3, b.ts +1`."""
    newest = _newest(text)
    files: dict[str, list[int]] = {}
    name = ""
    for part in re.split(r"^(?=diff --git )", text, flags=re.MULTILINE):
        head = _FILE.match(part)
        if head is None:
            continue
        name = head[1]
        body = part.partition("\n@@")[2]
        files[name] = [body.count("\n+"), body.count("\n-")]
    if files:
        listed = ", ".join(_changed(name, *counts) for name, counts in [*files.items()][:MAX_FILES])
        more = ", ..." if len(files) > MAX_FILES else ""
        return [*newest, f"{plain_count(len(files), 'file')}: {listed}{more}"]
    return [*newest, *_STAT.findall(text)[-1:]]


def _changed(name: str, added: int, removed: int) -> str:
    return name + (f" +{added}" if added else "") + (f" -{removed}" if removed else "")


def log_facts(text: str) -> list[str]:
    """`12 commits, newest 4c77fd2 Fix the parser`."""
    commits = _COMMIT.findall(text)
    count = len(commits) or len(_ONELINE.findall(text))
    return [f"{plain_count(count, 'commit')}, newest {newest}" for newest in _newest(text)]


def _newest(text: str) -> list[str]:
    long = _COMMIT.search(text)
    if long is not None:
        subject = _SUBJECT.search(text, long.end())
        return [f"{long[1][:7]} {cut(subject[1] if subject else '', SUBJECT_CHARS)}".rstrip()]
    line = _ONELINE.match(text)
    return [f"{line[1][:7]} {cut(line[2], SUBJECT_CHARS)}"] if line else []


_NUMBERED = re.compile(r"^ *\d+\t", re.MULTILINE)

SEARCHES = frozenset({"grep", "rg", "egrep", "fgrep", "ag", "ack", "git grep"})

LISTINGS = frozenset({"find", "ls", "fd", "tree", "git ls-files", "git ls-tree"})

FILES = frozenset({"cat", "sed", "head", "tail", "nl", "bat", "less", "awk", "jq"})

GIT: Mapping[str, Callable[[str], list[str]]] = {
    "git status": status_facts,
    "git diff": diff_facts,
    "git show": diff_facts,
    "git log": log_facts,
}


def command_facts(arguments: Mapping[str, Any], output: ToolOutput) -> list[str]:
    command = str(arguments.get("command") or "")
    # 1 says no more than that it failed, as the reference line does.
    lines = [f"exit {output.exit_code}"] if output.exit_code not in (None, 0, 1) else []
    run = programs(command)
    if run and run <= SEARCHES:
        return lines + search_facts(arguments, output)
    if run and run <= LISTINGS:
        return lines + listing_facts(arguments, output)
    for program, facts in GIT.items():
        if program in run:
            lines += facts(output.body)
    if run and run <= FILES:
        text = _NUMBERED.sub("", output.body)
        return lines + (text_facts(command, text) or error_facts(output.body))
    return lines + (outcome_facts(output.body) or json_facts(output.body))


def paste_facts(_arguments: Mapping[str, Any], output: ToolOutput) -> list[str]:
    """Facts of a difference, a run, or a file."""
    text = output.body
    if "diff --git " in text:
        return diff_facts(text)
    return outcome_facts(text) or text_facts("", text) or text_facts(".md", text)


def outcome_facts(text: str) -> list[str]:
    traces = trace_facts(text)
    lines = [*test_facts(text), *install_facts(text), *traces]
    for fact in error_facts(text, 1 if traces else 2):
        if not any(fact in line or line in fact for line in lines):
            lines.append(fact)
    return lines


Facts = Callable[[Mapping[str, Any], ToolOutput], list[str]]

KINDS: dict[str, Facts] = {
    "read": file_facts,
    "grep": search_facts,
    "multi_grep": search_facts,
    "find": listing_facts,
    "ls": listing_facts,
    "bash": command_facts,
    "exec": command_facts,
    "powershell": command_facts,
    "user": paste_facts,
}
"""Makers of facts by tool, most telling first."""


@dataclass(frozen=True, slots=True)
class DigestSize:
    """Bounds of a digest, of which the smaller holds."""

    chars: int = 1000
    share: float = 0.1
    """Share of the text."""

    def limit(self, text: str) -> int:
        """Longest digest of a text."""
        return min(self.chars, int(self.share * len(text)))


def digest(
    tool: str, arguments: Mapping[str, Any], text: str, *, held: Set[str], size: DigestSize
) -> str:
    """The digest of a result, perhaps empty; `held` are names readable elsewhere in the prompt."""
    limit = size.limit(text)
    if not limit:
        return ""
    output = ToolOutput.of(text)
    facts = KINDS.get(tool)
    line = _fitting(facts(arguments, output), limit - 1) if facts else ""
    line = block(one_line(line))
    room = limit - len(line) - 1
    in_line = identifiers(line)
    names = unheld_names(output.named, held, room, named_before=in_line) if room > 0 else ""
    return "\n".join(part for part in (line, names) if part)


def unheld_names(
    text: str, held: Set[str], chars: int, *, named_before: Set[str] = frozenset()
) -> str:
    """`names: ...`, repeated ones first, without those `held` or `named_before`."""
    all_names = identifiers(text)
    names = all_names - held - named_before
    # A path names its last part, too.
    tails = {name.rpartition("/")[2] for name in names if "/" in name}
    fitting: list[str] = []
    room = chars - len(_HEAD)
    for name in _by_use(names - tails, text):
        if len(name) >= room or _tells_nothing(name, all_names):
            continue
        name = _whole(name, text) if "/" in name else name
        if len(name) < room:
            room -= len(name) + 1
            fitting.append(name)
    return " ".join([_HEAD, *fitting]) if fitting else ""


_MORE = ", ..."


def _fitting(facts: list[str], room: int) -> str:
    fitting: list[str] = []
    for fact in facts:
        room -= 2 if fitting else 0
        if len(fact) > room:
            listed = fact[: max(0, room - len(_MORE))].rpartition(", ")[0]
            fitting += [listed + _MORE] if listed else []
            break
        fitting.append(fact)
        room -= len(fact)
    return "; ".join(fitting)


_HEAD = "names:"

_QUANTITY = re.compile(
    # 12, 3.5, 14/398, 2.6e-13; with a unit: 130ms, 50.0KB, 47.2it/s, 04.010Z
    r"\d+(?:[./]\d+)?(?:e[+-]?\d+)?(?:[A-Za-z]{1,3}(?:/[A-Za-z]{1,3})?)?"
    # 2026-02-12, 2026-02-12T05
    r"|\d{4}-\d\d-\d\d(?:T.*)?"
    # an address in memory
    r"|0x[0-9a-f]{8,}"
)

_OF_NO_USE = re.compile(
    # 5.0.9, 1-140, v0.12, 6-digit; a commit, its beginning, a colour; $PATH; `log-$` of `log-${id}`
    r"v?\d(?:[\w-]*|[\d.-]*)|[0-9a-f]{6,64}|\$[A-Z_]+|[\w-]+\$"
)
"""Names that later calls hardly ever use."""

_MEMBER = re.compile(r"(?:[a-z]{1,2}|this|self)\.(\w+)")
"""A member behind an uninformative name: `m.toolName`."""


def _tells_nothing(name: str, found: Set[str]) -> bool:
    if not any(map(str.isalnum, name)) or _OF_NO_USE.fullmatch(name):
        return True
    if name[0].isdecimal():
        return _QUANTITY.fullmatch(name) is not None
    # `this.render` says no more than `render`.
    member = _MEMBER.fullmatch(name) if "." in name else None
    return member is not None and member[1] in found


def _whole(path: str, text: str) -> str:
    """A path with what precedes its first word: `/usr/lib`, `../doc`."""
    at = start = text.find(path)
    while start > 0 and text[start - 1] in "./~":
        start -= 1
    if start > 0 and (text[start - 1].isalnum() or text[start - 1] in "_$-:"):
        # This is the end of a longer one, or of an address.
        return path
    return text[start:at].removeprefix("./") + path


MANY = 6
"""Repetitions beyond this change nothing."""


COUNTED_CHARS = 100_000_000


def _by_use(names: Set[str], text: str) -> list[str]:
    """Likeliest to be used first: repeated ones, then short ones."""
    text = text[: COUNTED_CHARS // max(1, len(names))]
    # A name stands within words: of each word it is enough to look at one.
    by_count: defaultdict[int, list[str]] = defaultdict(list)
    for word, count in Counter(words_of_names(text)).items():
        by_count[min(count, MANY)].append(word)
    groups = [(count, " ".join(by_count[count])) for count in sorted(by_count, reverse=True)]

    def uses(name: str) -> int:
        total = 0
        for count, words in groups:
            total += count * words.count(name)
            if total >= MANY:
                return MANY
        return total

    return sorted(names, key=lambda name: (-uses(name), len(name), name))
