"""Facts of what git says: status, differences, log."""

from __future__ import annotations

import re
from collections import Counter

from foredeck.commands.output import counted
from foredeck.model.short_texts import cut

_BRANCH = re.compile(
    r"^(?:On branch|## )\s*([^\s.]+(?:\.[^\s.]+)*)|^(HEAD detached at \S+)", re.MULTILINE
)
_APART = re.compile(r"(ahead|behind)(?: of '[^'\n]*' by)? (\d+)")
_DIVERGED = re.compile(r"have (\d+) and (\d+) different commits")
_LONG = re.compile(r"^\t(new file|modified|deleted|renamed|both \w+|typechange): ", re.MULTILINE)
_SHORT = re.compile(r"^([ MADRCU?]{2}) \S", re.MULTILINE)
_LETTERS = {"M": "modified", "A": "new", "D": "deleted", "R": "renamed", "U": "unmerged"}
_UNTRACKED = re.compile(r"^Untracked files:\n(?:  \(.*\n)?((?:\t.*\n?)*)", re.MULTILINE)
_FILE = re.compile(r"^diff --git a/(\S+)", re.MULTILINE)
_COMMIT = re.compile(r"^(?:\* )?commit ([0-9a-f]{7,40})\b", re.MULTILINE)
_SUBJECT = re.compile(r"^    (\S.*)$", re.MULTILINE)
_ONELINE = re.compile(r"^(?:[*|/\\ ]+ )?([0-9a-f]{7,40}) (\S.*)$", re.MULTILINE)
_STAT = re.compile(r"^ (\d+ files? changed.*)$", re.MULTILINE)
MAX_FILES = 4
SUBJECT_CHARS = 60


def status_facts(text: str) -> list[str]:
    """`on main, ahead 2: 3 modified, 1 untracked`, or `clean`."""
    found = Counter(kind.removesuffix(" file") for kind in _LONG.findall(text))
    for letters in _SHORT.findall(text):
        found[_short_kind(letters)] += 1
    for block in _UNTRACKED.findall(text):
        found["untracked"] += block.count("\t")
    branch = _BRANCH.search(text)
    if branch is None and not found:
        return []
    where = [] if branch is None else [branch[2] or f"on {branch[1]}"]
    where += [f"{way} {count}" for way, count in _APART.findall(text)]
    where += [f"{ours} ahead, {theirs} behind" for ours, theirs in _DIVERGED.findall(text)]
    changes = ", ".join(f"{count} {kind}" for kind, count in found.items()) or "clean"
    return [": ".join(part for part in (", ".join(where), changes) if part)]


def _short_kind(letters: str) -> str:
    return "untracked" if "?" in letters else _LETTERS.get(letters.strip()[:1], "changed")


def diff_facts(text: str) -> list[str]:
    """`2 files: a.ts +12 -3, b.ts +1`, or the last line of a `--stat`; before it the commit."""
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
        return [*newest, f"{counted(len(files), 'file')}: {listed}{more}"]
    return [*newest, *_STAT.findall(text)[-1:]]


def _changed(name: str, added: int, removed: int) -> str:
    return name + (f" +{added}" if added else "") + (f" -{removed}" if removed else "")


def log_facts(text: str) -> list[str]:
    """`12 commits, newest 4c77fd2 Fix the parser`."""
    commits = _COMMIT.findall(text)
    count = len(commits) or len(_ONELINE.findall(text))
    return [f"{counted(count, 'commit')}, newest {newest}" for newest in _newest(text)]


def _newest(text: str) -> list[str]:
    """The first commit that a text shows, in a list of at most one."""
    long = _COMMIT.search(text)
    if long is not None:
        subject = _SUBJECT.search(text, long.end())
        return [f"{long[1][:7]} {cut(subject[1] if subject else '', SUBJECT_CHARS)}".rstrip()]
    line = _ONELINE.match(text)
    return [f"{line[1][:7]} {cut(line[2], SUBJECT_CHARS)}"] if line else []
