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


@dataclass(slots=True)
class _Done:
    """What the tools did in a span of messages."""

    calls: int = 0
    web: int = 0
    looking: int = 0
    failed: int = 0
    changed: int = 0
    files: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()


def guess_mode(messages: Sequence[SourceMessage]) -> ModeChoice:
    """The mode by what tools did in these messages: `default` where they do not tell."""
    done = _done(messages)
    mode, reason = _guessed(done)
    return ModeChoice(mode, "guess", reason)


def _guessed(done: _Done) -> tuple[Mode, str]:
    if done.calls < _FEWEST:
        return "default", "too few tool calls to tell"
    if done.web * 2 >= done.calls:
        return "research", f"{done.web} of {done.calls} calls asked the web"
    if not done.changed:
        if done.failed > 1:
            return "debugging", f"{done.failed} calls failed and nothing was changed"
        if done.looking * 3 >= done.calls * 2:
            return "explore", f"{done.looking} of {done.calls} calls only looked"
        return "default", "nothing was changed"
    if done.tests and len(done.tests) == len(done.files):
        return "testing", f"only tests were changed ({len(done.tests)})"
    if done.failed > 1:
        return "bug_fixing", f"{done.failed} calls failed and {done.changed} changed files"
    if len(done.files) >= _MANY_FILES:
        return "refactoring", f"{len(done.files)} files were changed and hardly anything failed"
    return "default", "no kind of work stands out"


def _done(messages: Sequence[SourceMessage]) -> _Done:
    done = _Done()
    files: dict[str, None] = {}
    for message in messages:
        for call in message.calls:
            tool = call.tool.lower()
            done.calls += 1
            done.web += any(word in tool for word in _WEB)
            done.looking += tool in _LOOKS
            if tool in _WRITES:
                done.changed += 1
                files[call.path] = None
        done.failed += message.kind == "result" and message.failed
    done.files = tuple(files)
    done.tests = tuple(path for path in files if is_test(path))
    return done


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
