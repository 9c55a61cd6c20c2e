"""What an observer looks for, by the kind of work; and which kind it is where that is not said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from foredeck.model.observations import Mode, ModeBy
from foredeck.observations.chunks import SourceMessage


@dataclass(frozen=True, slots=True)
class ModeRules:
    """`threshold`: how many tokens of messages may wait before what was noted of them takes their
    place. `focus`: what the observer should look for. `fields`: what it may note by name, each
    with what that means. `example`: a note with all of them."""

    threshold: int
    focus: str
    fields: Mapping[str, str]
    example: str = ""


MODES: Mapping[Mode, ModeRules] = {
    "default": ModeRules(30_000, "everything that the work depends on.", {}),
    "explore": ModeRules(
        60_000,
        "what was found in the code and where, and what was looked for without success.",
        {"searched": "what was searched for", "not_found": "what is not there"},
        "- 09:10 medium finding: Loaves are priced in src/pricing/rules.ts:20, price(loaf: Loaf)\n"
        "  searched: round(, tax, cents\n"
        "  not_found: a rule for refunds",
    ),
    "bug_fixing": ModeRules(
        40_000,
        "the error, what causes it, and what was changed against it.",
        {
            "error_type": "the error's name",
            "stack_trace": "the frames that matter",
            "root_cause": "why it happens",
        },
        "- 09:40 high error: src/loaves.ts:88 crashed on loaf.due\n"
        "  error_type: TypeError\n"
        "  stack_trace: parseLoaf (src/loaves.ts:88), POST /api/loaves (src/routes/loaves.ts:12)\n"
        "  root_cause: guests have no due date",
    ),
    "refactoring": ModeRules(
        50_000,
        "interfaces, what depends on them, and what a change breaks.",
        {"affected": "files that change with it", "breaking": "what no longer works as before"},
        "- 09:26 medium change: Agent gave price() a currency: price(loaf: Loaf, code: string)\n"
        "  affected: src/order.ts, src/routes/loaves.ts\n"
        "  breaking: callers with one argument no longer compile",
    ),
    "testing": ModeRules(
        40_000,
        "which tests there are, what they cover, and how they end.",
        {"test_results": "tests and how they ended", "coverage": "what is and is not covered"},
        "- 09:52 medium test: Agent added tests/test_pages.py\n"
        "  test_results: test_retries_after_500 passed, test_post_is_not_retried failed\n"
        "  coverage: retries after 500 and 503; not: time-outs",
    ),
    "debugging": ModeRules(
        40_000,
        "symptoms, the values that were seen, and what they rule out.",
        {"symptoms": "what goes wrong", "variables": "names with the values that were seen"},
        "- 09:44 high finding: The oven's clock is behind, so loaves are not late\n"
        "  symptoms: due orders are shown as open\n"
        "  variables: now=1777800000, loaf.due=1777796400",
    ),
    "research": ModeRules(
        60_000,
        "what was learned, and from which source.",
        {"sources": "where it is from", "not_found": "what no source answers"},
        "- 09:12 medium finding: tenacity 8.2.3 waits between tries with wait_fixed(seconds)\n"
        "  sources: https://tenacity.readthedocs.io/en/latest/\n"
        "  not_found: a limit for all tries together",
    ),
}


ALL_FIELDS = tuple(dict.fromkeys(name for rules in MODES.values() for name in rules.fields))


@dataclass(frozen=True, slots=True)
class ModeChoice:
    """A mode, who chose it, and why in words."""

    mode: Mode
    by: ModeBy
    reason: str


_WRITES = frozenset({"edit", "write", "multiedit", "apply_patch"})
_LOOKS = frozenset({"read", "grep", "find", "ls", "glob", "search"})
_WEB = ("web", "fetch", "browse", "http", "url")
_FEWEST = 4
"""Calls; fewer say nothing about what the work is."""
_MANY_FILES = 5
"""Files changed: so many at once are a reorganisation rather than a fix."""


def guess_mode(messages: Sequence[SourceMessage]) -> ModeChoice:
    """The mode by what tools did in these messages: `default` where they do not tell."""
    mode, reason = _guessed(messages)
    return ModeChoice(mode, "guess", reason)


def _guessed(messages: Sequence[SourceMessage]) -> tuple[Mode, str]:
    calls = [(call.tool.lower(), call.path) for message in messages for call in message.calls]
    web = sum(any(word in tool for word in _WEB) for tool, _ in calls)
    looking = sum(tool in _LOOKS for tool, _ in calls)
    written = [path for tool, path in calls if tool in _WRITES]
    failed = sum(message.kind == "result" and message.failed for message in messages)
    files = set(written)
    if len(calls) < _FEWEST:
        return "default", "too few tool calls to tell"
    if web * 2 >= len(calls):
        return "research", f"{web} of {len(calls)} calls asked the web"
    if not written:
        if failed > 1:
            return "debugging", f"{failed} calls failed and nothing was changed"
        if looking * 3 >= len(calls) * 2:
            return "explore", f"{looking} of {len(calls)} calls only looked"
        return "default", "nothing was changed"
    if all(map(is_test, files)):
        return "testing", f"only tests were changed ({len(files)})"
    if failed > 1:
        return "bug_fixing", f"{failed} calls failed and {len(written)} changed files"
    if len(files) >= _MANY_FILES:
        return "refactoring", f"{len(files)} files were changed and hardly anything failed"
    return "default", "no kind of work prevails"


def is_test(path: str) -> bool:
    """Whether a file is a test, by its name and folders."""
    parts = PurePosixPath(path.replace("\\", "/").lower()).parts
    if not parts:
        return False
    folders, name = parts[:-1], parts[-1]
    stem = name.partition(".")[0]
    in_tests = any(folder in ("test", "tests", "__tests__", "spec") for folder in folders)
    called = stem.startswith("test_") or stem.endswith(("_test", "_spec"))
    return in_tests or called or ".test." in name or ".spec." in name
