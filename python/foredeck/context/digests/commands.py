"""Facts of a command's output: how it ended, what a test run came to, the first error."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_EXIT = re.compile(r"(?:Command exited with code|exit code:?) (\d+)\s*\Z", re.IGNORECASE)
_SUMMARY = re.compile(
    r".*\b\d+ (?:passed|failed|passing|failing|tests? (?:passed|failed)|errors?\b)"
    r"|test result: |(?:FAIL|ok|PASS)\s+\S|Tests?:? +.*\d"
)
_FAILURE = re.compile(
    r"FAILED |--- FAIL: |\s*(?:✗|✕|×) "
    r"|.*\berror(?:\[\w+\]|\s+TS\d+)?: |\w*(?:Error|Exception): "
)
_SUMMARY_WORDS = ("pass", "fail", "error", "test result: ", "FAIL", "ok", "PASS", "Test")
_FAILURE_WORDS = ("FAIL", "✗", "✕", "×", "rror", "Exception: ")
"""A line without any of these need not be tried: looking for words is many times faster."""

MAX_FAILURES = 2
LINE_CHARS = 120


def command_facts(arguments: Mapping[str, Any], text: str) -> str:
    """Exit code, the last summary line of a test run, and the first failures; empty if none."""
    del arguments
    told: list[str] = []
    code = _EXIT.search(text, max(0, len(text) - LINE_CHARS))
    if code:
        told.append(f"exit code {code[1]}")
    lines = text.split("\n")
    summary = next(_matching(lines[::-1], _SUMMARY, _SUMMARY_WORDS), None)
    if summary is not None:
        told.append(summary)
    for line in _matching(lines, _FAILURE, _FAILURE_WORDS):
        if line not in told:
            told.append(line)
        if len(told) >= MAX_FAILURES + 2:
            break
    return "; ".join(told)


def _matching(lines: list[str], pattern: re.Pattern[str], words: tuple[str, ...]) -> Iterator[str]:
    """Lines that begin as the pattern says, cut short."""
    for line in lines:
        if any(word in line for word in words) and pattern.match(line):
            yield _short(line)


def _short(line: str) -> str:
    line = " ".join(line.strip(" =").split())
    return line if len(line) <= LINE_CHARS else line[: LINE_CHARS - 1] + "…"
