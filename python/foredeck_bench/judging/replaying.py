"""Recorded sessions, assembled in several ways, and judged."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from foredeck.context.messages.shape import find_faults
from foredeck.context.rebase import prices_of
from foredeck.engine.opened import Facilities, FacilityInputs
from foredeck.model.own_tools import definition_chars
from foredeck_agents.histories.recordings import load_recording
from foredeck_agents.histories.records import Transcript
from foredeck_bench.judging.comparison import Comparison
from foredeck_bench.judging.judge import Judgement, Rule, SessionFacts
from foredeck_lab.replay.options import ReplayOptions
from foredeck_lab.replay.replayed_session import ReplayedSession
from foredeck_lab.replay.warming import awaits_user

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


def head_settings(tokens: int) -> tuple[str, str]:
    """Settings of a head of that length."""
    return (f"head.tokens={tokens}", f"head.max_tokens={tokens}")


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


_LINE = "notes/{0:03}.md: what was decided on day {0}, and what is still open about it #log"


class FilledSection:
    """See `foredeck.context.head.HeadSection`: as many notes as fit."""

    name = "notes"

    def text(self, limit: int) -> str:
        """Fills the whole of `limit`."""
        count = limit // len(_LINE.format(0)) + 1
        return "\n".join(_LINE.format(number) for number in range(count))[:limit]


def filled_head(_opening: FacilityInputs) -> Facilities:
    """Facilities with that section alone."""
    return Facilities((FilledSection(),))
