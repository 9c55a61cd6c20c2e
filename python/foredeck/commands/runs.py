"""Facts of runs: tests, builds and checks, installations."""

from __future__ import annotations

import re
from collections.abc import Iterator

from foredeck.commands.output import counted
from foredeck.model.figures import shortened

_TESTS = re.compile(
    r".*\b\d+ (?:passed|failed|passing|failing|examples?|tests? (?:passed|failed))\b"
    r"|test result: |Tests?:? +.*\d|(?:#|ℹ) (?:pass|fail) \d|OK \(|FAILED \(|Ran \d+ tests?"
)
_BUILD = re.compile(
    r".*\b\d+ (?:errors?|problems?)\b|error: could not compile|BUILD [A-Z]+|Build [a-z]+"
    r"|.*\bbuilt in |make: \*\*\* |\s*Finished "
)
_INSTALL = re.compile(
    r"added \d+ packages?|(?:removed|changed|audited) \d+ packages?|up to date"
    r"|Successfully installed |Installed \d+ packages?|Packages: [+-]\d|\d+ upgraded, "
    r"|Installing collected packages|Requirement already satisfied"
)
_INSTALL_WORDS = ("package", "up to date", "nstall", "Packages: ", "upgraded", "Requirement")
_SUMMARY = re.compile(f"(?:{_TESTS.pattern})|(?:{_BUILD.pattern})")
_SUMMARY_WORDS = (
    *("passed", "failed", "passing", "failing", "example", "Test", "test result", "Ran ", "OK ("),
    *("# ", "ℹ ", "FAILED (", "error", "problem", "uil", "BUILD ", "***", "Finished "),
)
_FAILURE = re.compile(
    r"FAILED |--- FAIL: |\s*(?:✗|✕|×|✖|not ok) "
    r"|.*\berror(?:\[\w+\]|\s+TS\d+)?: [\w'\"`]|\w*(?:Error|Exception): "
)
_FAILURE_WORDS = ("FAIL", "✗", "✕", "×", "✖", "not ok", "rror", "Exception: ")
"""A line without any of these need not be tried: looking for words is many times faster."""

_GO = re.compile(r"^(ok  |FAIL)\t(\S+)\t", re.MULTILINE)
_DIAGNOSTIC = re.compile(
    r"^(?:([^\s:()]+)(?:\((\d+),\d+\)|:(\d+)(?::\d+)?): (?:fatal )?error\b"
    r"| *--> ([^\s:]+):(\d+):\d+)",
    re.MULTILINE,
)
_TIME = re.compile(r" in [\d.]+ ?m?s\b| \([\d.]+ ?m?s\)|\b[\d.]+m?s$")

SUMMED_UP_IN = 6000
"""Characters at the end of an output."""

MAX_FAILURES = 2
MAX_FILES = 3
MAX_LINES = 12
LINE_CHARS = 120


def test_facts(text: str) -> list[str]:
    """The last summary of a test run or a build; of Go how its packages ended."""
    ended = _GO.findall(text) if "ok  \t" in text or "FAIL\t" in text else []
    if ended:
        failed = [name for how, name in ended if how == "FAIL"]
        counts = [f"{counted(len(ended) - len(failed), 'package')} ok"]
        return [", ".join([*counts, f"FAIL {' '.join(failed)}"] if failed else counts)]
    return list(_lines(text[-SUMMED_UP_IN:], _SUMMARY, _SUMMARY_WORDS, 1, last=True))


def install_facts(text: str) -> list[str]:
    """What a package manager says that it did, at the end."""
    return list(_lines(text[-SUMMED_UP_IN:], _INSTALL, _INSTALL_WORDS, 1, last=True))


def error_facts(text: str, most: int = MAX_FAILURES) -> list[str]:
    """Where the errors of a compiler or checker are, and the first failures in words."""
    places: dict[str, list[str]] = {}
    if "error" not in text and "Error" not in text:
        return list(_lines(text, _FAILURE, _FAILURE_WORDS, most))
    for one, line, other, rust, at in _DIAGNOSTIC.findall(text):
        places.setdefault(one or rust, []).append(line or other or at)
    summary = [_places(places)] if sum(map(len, places.values())) > 1 else []
    return [*summary, *_lines(text, _FAILURE, _FAILURE_WORDS, most - len(summary))]


def _places(places: dict[str, list[str]]) -> str:
    """`errors: a.ts 3 17, b.ts 40`, by line."""
    ranked = sorted(places.items(), key=lambda item: (-len(item[1]), item[0]))
    listed = [
        f"{name} {' '.join(dict.fromkeys(lines[:MAX_LINES]))}{' ...' * (len(lines) > MAX_LINES)}"
        for name, lines in ranked[:MAX_FILES]
    ]
    count = counted(sum(map(len, places.values())), "error")
    return f"{count}: {', '.join(listed)}{', ...' if len(ranked) > MAX_FILES else ''}"


def _lines(
    text: str, pattern: re.Pattern[str], words: tuple[str, ...], most: int, *, last: bool = False
) -> Iterator[str]:
    """The first lines that begin as the pattern says, or the last ones, each once, cut short."""
    words = tuple(word for word in words if word in text)
    lines = text.split("\n") if words and most > 0 else []
    seen: set[str] = set()
    for line in reversed(lines) if last else lines:
        if any(word in line for word in words) and pattern.match(line):
            short = _short(line)
            if short not in seen:
                seen.add(short)
                yield short
            if len(seen) >= most:
                return


def _short(line: str) -> str:
    return shortened(_TIME.sub("", line.strip(" =")), LINE_CHARS)
