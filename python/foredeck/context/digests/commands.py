"""Facts of a command's output: how it ended, what a test run came to, the first error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_EXIT = re.compile(r"(?:Command exited with code|exit code:?) (\d+)\s*\Z", re.IGNORECASE)
_SUMMARY = re.compile(
    r"^.*\b\d+ (?:passed|failed|passing|failing|tests? (?:passed|failed)|errors?\b).*$"
    r"|^test result: .*$|^(?:FAIL|ok|PASS)\s+\S+.*$|^Tests?:? +.*\d.*$",
    re.MULTILINE,
)
_FAILURE = re.compile(
    r"^(?:FAILED |--- FAIL: |\s*(?:✗|✕|×) "
    r"|.*\berror(?:\[\w+\]|\s+TS\d+)?: |\w*(?:Error|Exception): ).*$",
    re.MULTILINE,
)
MAX_FAILURES = 2
LINE_CHARS = 120


def command_facts(arguments: Mapping[str, Any], text: str) -> str:
    """Exit code, the last summary line of a test run, and the first failures; empty if none."""
    del arguments
    told: list[str] = []
    code = _EXIT.search(text)
    if code:
        told.append(f"exit code {code[1]}")
    summaries = [found[0] for found in _SUMMARY.finditer(text)]
    if summaries:
        told.append(_short(summaries[-1]))
    for found in _FAILURE.finditer(text):
        line = _short(found[0])
        if line not in told:
            told.append(line)
        if len(told) >= MAX_FAILURES + 2:
            break
    return "; ".join(told)


def _short(line: str) -> str:
    line = " ".join(line.strip(" =").split())
    return line if len(line) <= LINE_CHARS else line[: LINE_CHARS - 1] + "…"
