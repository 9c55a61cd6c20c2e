"""Recorded sessions, assembled by plain Pi and in several ways, and judged: one table."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from foredeck.accounting.cache import blocks_of, chars_of, is_sent
from foredeck.context.messages.shape import Message, find_faults
from foredeck.context.rebase import prices_of
from foredeck.model.call_values import CHARS_PER_TOKEN
from foredeck.model.own_tools import DEFAULT_FACILITIES, definition_chars
from foredeck.sources.tool_calls import path_argument
from foredeck_agents.histories.recordings import load_recording
from foredeck_agents.histories.records import Compaction, Transcript
from foredeck_bench.judging.judge import Judge, Judgement, Rule, SessionFacts
from foredeck_lab.replay.options import ReplayOptions, awaits_user, plain_prompts
from foredeck_lab.replay.replayed_session import ReplayedSession

PLAIN = "plain Pi"
WITHOUT = "plain Pi, no compaction"
LOWER = "plain Pi, compacting at 100k"
ON_DEMAND = "the API's compaction at 100k"
LOWER_TOKENS = 100_000

DEFINITION_TOKENS = definition_chars(*DEFAULT_FACILITIES) / 4
"""Tokens of the tools declared by default, counted in full."""


DEARER_SHARE, DEARER_TOKENS = 0.02, 2000
"""How much more a session may cost than plain Pi's: a share, or tokens."""


@dataclass(slots=True)
class Comparison:
    """Judgements by row, one for each session."""

    rule: Rule
    rows: dict[str, list[Judgement]] = field(default_factory=dict)

    def judge(self, facts: SessionFacts, definition_tokens: float = DEFINITION_TOKENS) -> Judge:
        return Judge(facts, self.rule, more_tokens=definition_tokens)

    def add(self, row: str, judgement: Judgement) -> None:
        """Take in one session's judgement."""
        self.rows.setdefault(row, []).append(judgement)

    def add_plain(self, transcript: Transcript, facts: SessionFacts) -> None:
        rate = facts.calibration
        lower = compactions_at(transcript, LOWER_TOKENS - rate.head_tokens, rate.chars_per_token)
        for row, compactions in (
            (PLAIN, transcript.compactions),
            (WITHOUT, []),
            (LOWER, lower),
        ):
            self.add_prompts(row, transcript, facts, plain_prompts(transcript, compactions))
        prompts = plain_prompts(transcript, lower)
        self.add_prompts(ON_DEMAND, transcript, facts, prompts, [each.seen for each in lower])

    def add_prompts(
        self,
        row: str,
        transcript: Transcript,
        facts: SessionFacts,
        prompts: Iterable[list[Message]],
        summed_up: Collection[int] | None = None,
    ) -> None:
        """Judges prompts without foredeck. `summed_up`: calls before which the API has written a
        summary."""
        judge = Judge(facts, self.rule, keeps_behind=summed_up is not None)
        for call, prompt in zip(transcript.calls, prompts, strict=True):
            if self.rule.warmer is not None:
                judge.wait(call, idle=awaits_user(transcript, call))
            if call.seen in (summed_up or ()):
                judge.sum_up(SUMMARY_TOKENS)
            judge.see(call, prompt)
        self.add(row, judge.judgement)

    def table(self) -> list[dict[str, Any]]:
        """The rows for the user; shares are of plain Pi's cost."""
        base = self.rows.get(PLAIN, [])
        return [_row(name, judged, base, self.rule) for name, judged in self.rows.items()]


def _row(
    name: str, judged: Sequence[Judgement], base: Sequence[Judgement], rule: Rule
) -> dict[str, Any]:
    total, plain = _sum(judged, rule), _sum(base, rule)
    shares = [j.cost / b.cost for j, b in zip(judged, base, strict=False) if b.cost]
    return {
        "row": name,
        "cost": round(total.cost),
        "cached": round(total.cached),
        "uncached": round(total.uncached),
        "all_in": round(total.all_in),
        "cost_percent": _percent(total.cost, plain.cost),
        "all_in_percent": _percent(total.all_in, plain.cost),
        "cost_percent_by_cache": {
            cache: _percent(total.cost_by(cache), plain.cost_by(cache)) for cache in total.spent
        },
        "worst_percent": round(100 * max(shares), 1) if shares else None,
        "beyond_limit": sum(map(is_beyond, judged, base)),
        "edit_evidence_percent": _percent(total.edits_seen, total.edits),
        "identifier_evidence_percent": _percent(total.names_seen, total.names),
        "code_name_evidence_percent": _percent(total.code_names_seen, total.code_names),
        "bare_code_name_evidence_percent": _percent(total.code_names_itself, total.code_names),
        "own_words_evidence_percent": _percent(total.own_words_seen, total.own_words),
        "asked": round(total.asked),
        "questions": total.questions,
        "peak_tokens": round(total.peak),
        "mean_tokens": round(total.summed / total.calls) if total.calls else 0,
        "rebases": dict(sorted(total.rebases.items())),
        "lost_tokens": dict(sorted(total.lost.items())),
    }


def is_beyond(ours: Judgement, other: Judgement) -> bool:
    """Whether a session costs too much more than by another rule."""
    return ours.cost - other.cost > max(DEARER_SHARE * other.cost, DEARER_TOKENS)


def _sum(judged: Sequence[Judgement], rule: Rule) -> Judgement:
    total = Judgement(rule)
    for judgement in judged:
        total.add(judgement)
    return total


def _percent(part: float, whole: float) -> float | None:
    return round(100 * part / whole, 1) if whole else None


KEPT_TOKENS = 20_000
"""Newest chat that Pi keeps at a compaction."""

SUMMARY_TOKENS = 1_500
"""Of a summary that was not recorded."""


def compactions_at(
    transcript: Transcript, tokens: float, chars_per_token: float = CHARS_PER_TOKEN
) -> list[Compaction]:
    """Where Pi would compact at this many tokens, with blank summaries."""
    messages = [recorded.message for recorded in transcript.messages]
    sizes = [chars_of(m) / chars_per_token if is_sent(m) else 0.0 for m in messages]
    compactions: list[Compaction] = []
    start, summary = 0, 0
    for call in transcript.calls:
        if summary + sum(sizes[start : call.seen]) <= tokens:
            continue
        kept_from = _kept_from(messages, sizes, start, call.seen)
        if kept_from <= start:
            continue
        summary_text = _blank_summary(messages[:kept_from], chars_per_token)
        compactions.append(Compaction(call.seen, kept_from, summary_text))
        start, summary = kept_from, SUMMARY_TOKENS
    return compactions


def _kept_from(messages: list[Message], sizes: list[float], start: int, end: int) -> int:
    """The first message kept, never a result without its call."""
    index, tokens = end, 0.0
    while index > start and tokens < KEPT_TOKENS:
        index -= 1
        tokens += sizes[index]
    while index > start and messages[index].get("role") == "toolResult":
        index -= 1
    return index


def _blank_summary(messages: list[Message], chars_per_token: float) -> str:
    paths = {
        path
        for message in messages
        if message.get("role") == "assistant"
        for block in blocks_of(message)
        if block.get("type") == "toolCall" and block.get("name") in ("read", "edit", "write")
        if isinstance(block.get("arguments"), dict) and (path := path_argument(block["arguments"]))
    }
    listed = "\n".join(sorted(paths))
    return listed + " " * max(0, int(SUMMARY_TOKENS * chars_per_token) - len(listed))


RIVALS: tuple[tuple[str, str], ...] = (
    ("pools", "seed-window"),
    ("anchored", "seed-window"),
    ("anchored", "adaptive"),
)
"""Layout and policy."""

WITHOUT_DIGESTS = "digests.max_tokens=0"
"""Evidence without digests, since a bag of names suits its measure."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to assemble prompts, as a row."""

    options: ReplayOptions
    name: str = ""
    """The row's title, by default layout and policy."""

    @property
    def label(self) -> str:
        """Title of the row."""
        observed = ", observed" if self.options.observes else ""
        return self.name or f"{self.options.layout}, {self.options.policy}{observed}"

    @property
    def definition_tokens(self) -> float:
        return definition_chars(*self.options.tools) / 4


def rivals(options: ReplayOptions) -> list[Way]:
    """The other `RIVALS` with the same settings; last without digests."""
    own = (options.layout, options.policy)
    bare = replace(options, settings=(*options.settings, WITHOUT_DIGESTS))
    return [
        *(
            Way(replace(options, layout=layout, policy=policy))
            for layout, policy in RIVALS
            if (layout, policy) != own
        ),
        Way(bare, name=f"{Way(options).label}, no digests"),
    ]


def rule_of(options: ReplayOptions) -> Rule:
    """How the judge charges. Raises `ConfigError`."""
    return Rule(options.cache, options.ttl_s, prices_of(options.cost()), options.warmer())


def judge_replay(
    transcript: Transcript, facts: SessionFacts, way: Way, comparison: Comparison
) -> Judgement:
    """The judgement on a session replayed in this way."""
    judge = comparison.judge(facts, way.definition_tokens)
    with (
        tempfile.TemporaryDirectory(prefix="foredeck-judge-", ignore_cleanup_errors=True) as home,
        closing(ReplayedSession(Path(home), transcript, way.options)) as session,
    ):
        for call in transcript.calls:
            warmed_ms = 0
            if judge.rule.warmer is not None:
                warmed_ms = judge.wait(call, idle=awaits_user(transcript, call))
            prompt, decision = session.call(call, warmed_ms)
            reason = decision.reason if decision.is_rebase else None
            judge.see(call, prompt, reason, session.marker)
            judge.judgement.invalid_prompts += bool(find_faults(prompt))
        if session.observer is not None:
            bill = session.observer.bill
            judge.judgement.asked, judge.judgement.questions = bill.cost, bill.questions
    return judge.judgement


@dataclass(slots=True)
class Compared:
    """What came of a set of sessions."""

    sessions: int = 0
    calls: int = 0
    invalid_prompts: int = 0
    errors: list[str] = field(default_factory=list)
    table: list[dict[str, Any]] = field(default_factory=list)


def compare(
    paths: Sequence[Path], ways: Sequence[Way], advance: Callable[[str], None] = lambda _name: None
) -> Compared:
    """Judges each session as plain Pi's and in each way, by the first one's rule."""
    comparison, compared = Comparison(rule_of(ways[0].options)), Compared()
    for path in paths:
        advance(path.name)
        compared.sessions += 1
        try:
            transcript = load_recording(path)
            facts = SessionFacts.of(transcript)
            judged = [judge_replay(transcript, facts, way, comparison) for way in ways]
        except Exception as error:  # one bad file must not end the replay of the others
            compared.errors.append(f"{path.name}: {type(error).__name__}: {error}")
            continue
        comparison.add_plain(transcript, facts)
        for way, judgement in zip(ways, judged, strict=True):
            comparison.add(way.label, judgement)
        compared.calls += judged[0].calls
        compared.invalid_prompts += sum(judgement.invalid_prompts for judgement in judged)
    compared.table = comparison.table()
    return compared
