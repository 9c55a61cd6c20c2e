"""What observers look for, and when they observe, replace messages, and condense. Pure, in
tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Protocol

from foredeck.model.memory import MemoryScope
from foredeck.model.observations import Mode, ModeBy
from foredeck.observations.chunks import ChunkRules, SourceMessage
from foredeck.store.clock import DAY_MS


@dataclass(frozen=True, slots=True)
class ModeRules:
    """A kind of work: what to look for, what may be noted by name, and after how many tokens notes
    replace messages."""

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
    """A mode, who chose it, and why."""

    mode: Mode
    by: ModeBy
    reason: str


_WRITES = frozenset({"edit", "write", "multiedit", "apply_patch"})
_LOOKS = frozenset({"read", "grep", "find", "ls", "glob", "search"})
_WEB = ("web", "fetch", "browse", "http", "url")
_FEWEST = 4
"""Fewer calls do not show the kind of work."""
_MANY_FILES = 5
"""Changed files that make a reorganisation."""


def guess_mode(messages: Sequence[SourceMessage]) -> ModeChoice:
    """The mode by the tools' actions; `default` if they do not tell."""
    mode, reason = _guessed(messages)
    return ModeChoice(mode, "guess", reason)


def _guessed(messages: Sequence[SourceMessage]) -> tuple[Mode, str]:
    calls = [(call.tool.lower(), call.path) for message in messages for call in message.calls]
    web = sum(any(word in tool for word in _WEB) for tool, _ in calls)
    looking = sum(tool in _LOOKS for tool, _ in calls)
    paths = [path for tool, path in calls if tool in _WRITES]
    failed = sum(message.kind == "result" and message.failed for message in messages)
    files = set(paths)
    if len(calls) < _FEWEST:
        return "default", "too few tool calls to tell"
    if web * 2 >= len(calls):
        return "research", f"{web} of {len(calls)} calls asked the web"
    if not paths:
        if failed > 1:
            return "debugging", f"{failed} calls failed and nothing was changed"
        if looking * 3 >= len(calls) * 2:
            return "explore", f"{looking} of {len(calls)} calls only looked"
        return "default", "nothing was changed"
    if all(map(is_test, files)):
        return "testing", f"only tests were changed ({len(files)})"
    if failed > 1:
        return "bug_fixing", f"{failed} calls failed and {len(paths)} changed files"
    if len(files) >= _MANY_FILES:
        return "refactoring", f"{len(files)} files were changed and hardly anything failed"
    return "default", "no kind of work prevails"


def is_test(path: str) -> bool:
    parts = PurePosixPath(path.replace("\\", "/").lower()).parts
    if not parts:
        return False
    folders, name = parts[:-1], parts[-1]
    stem = name.partition(".")[0]
    in_tests = any(folder in ("test", "tests", "__tests__", "spec") for folder in folders)
    called = stem.startswith("test_") or stem.endswith(("_test", "_spec"))
    return in_tests or called or ".test." in name or ".spec." in name


@dataclass(frozen=True, slots=True)
class TimingRules:
    """When to observe, replace and condense, in tokens.

    `block_after`: observing then comes before other work; `raw_count`: remarks that stay beside
    reflections.
    """

    threshold: int | None = None
    reflection: int = 40_000
    activation: float = 0.8
    block_after: int = 7200
    raw_count: int = 50
    raw_ms: int = DAY_MS
    chunk: ChunkRules = field(default_factory=ChunkRules)
    scope: MemoryScope = "thread"


BEGIN_SHARE, LEAST_WINDOW = 0.65, 100_000
"""Notes begin at this share of such a window, fully folded; earlier they cost more than they save
(docs/economics.md)."""


def begins(chat_tokens: int, window: int | None) -> bool:
    """Whether such a chat is noted unasked."""
    return window is not None and window >= LEAST_WINDOW and chat_tokens >= BEGIN_SHARE * window


def threshold_of(rules: TimingRules, mode: Mode, observation_tokens: int) -> int:
    """Tokens of messages that the prompt may hold: the mode's threshold without observations, at
    least a chunk."""
    threshold = MODES[mode].threshold if rules.threshold is None else rules.threshold
    return max(rules.chunk.least, threshold - observation_tokens)


def least_pending(rules: TimingRules, mode: Mode, observation_tokens: int) -> int:
    """Unobserved tokens required for a chunk."""
    if rules.scope == "thread":
        return rules.chunk.least
    return threshold_of(rules, mode, observation_tokens)


def is_activation_due(
    rules: TimingRules, mode: Mode, *, message_tokens: int, observation_tokens: int, fits: bool
) -> bool:
    """Whether notes may replace their messages now."""
    threshold = threshold_of(rules, mode, observation_tokens)
    return not fits or message_tokens >= rules.activation * threshold


def is_pressing(rules: TimingRules, pending: int) -> bool:
    """Whether observing precedes all other background work."""
    return pending >= rules.chunk.least + rules.block_after


class Condensable(Protocol):
    """An observation or reflection that can be condensed."""

    @property
    def tokens(self) -> int: ...

    @property
    def remark_times(self) -> Sequence[int]:
        """Times of its remarks in milliseconds."""
        ...

    @property
    def is_condensed(self) -> bool:
        """Whether it is a reflection."""
        ...


MOST_CONDENSED = 12_000
"""Tokens condensed at once: any model can write half of it."""

NOTES_SHARE = 0.2
"""Largest share of a window for notes before condensing."""


def notes_limit(rules: TimingRules, window: int | None) -> int:
    """Tokens of notes before the oldest are condensed."""
    return min(rules.reflection, int(NOTES_SHARE * window)) if window else rules.reflection


def kept_raw(rules: TimingRules, notes: Sequence[Condensable], limit: int, now_ms: int) -> int:
    """The newest texts that stay when others are condensed."""
    # They hold the newest remarks of the last day, `raw_count` at most, and take half of the limit
    # at most. An observation is kept or condensed as a whole.
    count = remarks = tokens = 0
    for one in reversed(notes):
        times = one.remark_times
        tokens += one.tokens
        is_old = max(times, default=0) < now_ms - rules.raw_ms
        if is_old or remarks >= rules.raw_count or tokens > limit // 2:
            break
        remarks += len(times)
        count += 1
    return count


def to_condense(
    rules: TimingRules,
    notes: Sequence[Condensable],
    now_ms: int,
    window: int | None = None,
    *,
    asked: bool = False,
) -> int:
    """The number of oldest texts to condense now.

    `asked`: by the user, at any size.
    """
    limit = notes_limit(rules, window)
    if not asked and sum(one.tokens for one in notes) < limit:
        return 0
    older = notes[: len(notes) - kept_raw(rules, notes, limit, now_ms)]
    return _oldest(older) or (_oldest(notes) if asked else 0)


def _oldest(notes: Sequence[Condensable]) -> int:
    count = tokens = 0
    for one in notes:
        tokens += one.tokens
        if count and tokens > MOST_CONDENSED:
            break
        count += 1
    # What has been condensed is condensed again together with what came after it.
    return 0 if count == 1 and notes[0].is_condensed else count


def coverage(covered_tokens: int, left_tokens: int) -> float:
    """Share of tokens gone from the prompt that were observed first."""
    return 1.0 if left_tokens <= 0 else min(1.0, covered_tokens / left_tokens)
