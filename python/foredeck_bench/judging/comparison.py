"""Recorded sessions, assembled by plain Pi and in several ways, and judged."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from foredeck.cli.output import table
from foredeck.context.messages.shape import find_faults
from foredeck.context.rebase import prices_of
from foredeck.model.figures import short_count
from foredeck.model.own_tools import definition_chars
from foredeck_agents.histories.recordings import load_recording, stem_of
from foredeck_agents.histories.records import Transcript
from foredeck_bench.judging.evidence import ReasoningShare
from foredeck_bench.judging.judge import Judge, Judgement, Rule, SessionFacts
from foredeck_bench.judging.yardsticks import PLAIN, SIMPLE, head_cost, hindsight_cost, judged_plain
from foredeck_lab.replay.options import ReplayOptions
from foredeck_lab.replay.replayed_session import ReplayedSession

DEARER_SHARE, DEARER_TOKENS = 0.02, 2000
"""How much more a session may cost: a share, or tokens."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to assemble prompts, as a row."""

    options: ReplayOptions
    name: str = ""
    """The row's title, by default layout and policy."""

    @property
    def label(self) -> str:
        """Title of the row."""
        return self.name or f"{self.options.layout}, {self.options.policy}"


def rule_of(options: ReplayOptions) -> Rule:
    """How the judge charges. Raises `ConfigError`."""
    return Rule(options.cache, options.ttl_s, prices_of(options.cost()), options.warmer())


@dataclass(frozen=True, slots=True)
class JudgedSession:
    """One session's judgements by row, its least cost with hindsight, and that of its head."""

    name: str
    repository: str
    rows: Mapping[str, Judgement]
    hindsight: float
    head: float

    @property
    def best_simple(self) -> str:
        """The simple rule that costs least."""
        return min(SIMPLE, key=lambda rule: self.rows[rule].cost)

    def is_dearer(self, row: str) -> bool:
        """Whether a row costs clearly more than the best simple rule."""
        least = self.rows[self.best_simple].cost
        return self.rows[row].cost - least > max(DEARER_SHARE * least, DEARER_TOKENS)


@dataclass(slots=True)
class Compared:
    """What came of a set of sessions."""

    sessions: list[JudgedSession] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def table(self) -> list[dict[str, Any]]:
        """Each row's figures; shares are of plain Pi's cost."""
        rows = self.sessions[0].rows if self.sessions else ()
        return [_figures(name, self.sessions) for name in rows]

    @property
    def invalid_prompts(self) -> int:
        return sum(each.invalid_prompts for s in self.sessions for each in s.rows.values())


def compare(
    paths: Sequence[Path],
    ways: Sequence[Way],
    advance: Callable[[str], None] = lambda _name: None,
    *,
    jobs: int = 1,
) -> Compared:
    """Judges each session as plain Pi's and in each way, by the first one's rule and model.
    Raises `ConfigError`."""
    compared, rule = Compared(), rule_of(ways[0].options)
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        work = partial(_judged, rule, ways)
        for path, judged in zip(paths, (map if jobs == 1 else pool.map)(work, paths), strict=True):
            advance(path.name)
            if isinstance(judged, str):
                compared.errors.append(judged)
            else:
                compared.sessions.append(judged)
    return compared


def _judged(rule: Rule, ways: Sequence[Way], path: Path) -> JudgedSession | str:
    try:
        transcript = ways[0].options.by_model(load_recording(path))
        facts = SessionFacts.of(transcript)
        rows = dict(judged_plain(transcript, facts, rule))
        rows |= {way.label: _judge_replay(transcript, facts, way, rule) for way in ways}
    except Exception as error:  # one bad file must not end the replay of the others
        return f"{path.name}: {type(error).__name__}: {error}"
    least, head = (cost(transcript, facts, rule) for cost in (hindsight_cost, head_cost))
    return JudgedSession(stem_of(path), repository_of(path), rows, least, head)


def _judge_replay(transcript: Transcript, facts: SessionFacts, way: Way, rule: Rule) -> Judgement:
    judge = Judge(facts, rule, more_tokens=definition_chars(*way.options.tools) / 4)
    with (
        tempfile.TemporaryDirectory(prefix="foredeck-judge-", ignore_cleanup_errors=True) as home,
        closing(ReplayedSession(Path(home), transcript, way.options)) as session,
    ):
        for call in transcript.calls:
            prompt, decision = session.call(call, judge.wait(transcript, call))
            reason = decision.reason if decision.is_rebase else None
            judge.see(call, prompt, reason, session.marker)
            judge.judgement.invalid_prompts += bool(find_faults(prompt))
        if session.observer is not None:
            bill = session.observer.bill
            judge.judgement.asked, judge.judgement.questions = bill.cost, bill.questions
    return judge.judgement


def repository_of(path: Path) -> str:
    """`owner/name` of a file `owner__name__...`, else the folder."""
    parts = path.stem.split("__")
    return "/".join(parts[:2]) if len(parts) > 2 else path.parent.name


def total(sessions: Sequence[JudgedSession], row: str) -> Judgement:
    """A row's figures over all sessions."""
    sums = Judgement(sessions[0].rows[row].rule) if sessions else Judgement()
    for session in sessions:
        sums.add(session.rows[row])
    return sums


def _figures(name: str, sessions: Sequence[JudgedSession]) -> dict[str, Any]:
    sums, plain = total(sessions, name), total(sessions, PLAIN)
    bound = sum(session.hindsight for session in sessions)
    shares = [each.rows[name].cost / (each.rows[PLAIN].cost or 1) for each in sessions]
    reasoning = sums.reasoning
    return {
        "row": name,
        "cost": round(sums.cost),
        "all_in": round(sums.all_in),
        "cost_percent": percent(sums.cost, plain.cost),
        "reached_percent": percent(plain.cost - sums.cost, plain.cost - bound),
        "all_in_percent": percent(sums.all_in, plain.cost),
        "worst_percent": percent(max(shares), 1.0),
        "beyond_limit": sum(each.is_dearer(name) for each in sessions),
        "edit_evidence_percent": percent(sums.edits_seen, sums.edits),
        "name_evidence_percent": percent(sums.names_seen, sums.names),
        "own_words_evidence_percent": percent(sums.own_words_seen, sums.own_words),
        "reasoning_percent": _accepted(reasoning.all),
        "recent_reasoning_percent": _accepted(reasoning.recent),
        "signed_recent_reasoning_percent": _accepted(reasoning.signed_recent),
        "asked": round(sums.asked),
        "questions": sums.questions,
        "peak_tokens": round(sums.peak),
        "mean_tokens": round(sums.summed / sums.calls) if sums.calls else 0,
        "rebases": dict(sorted(sums.rebases.items())),
    }


def _accepted(share: ReasoningShare) -> float | None:
    return percent(share.accepted, share.produced)


def percent(part: float, whole: float) -> float | None:
    return round(100 * part / whole, 1) if whole else None


_COLUMNS = {
    "cost": "cost_percent",
    "reached": "reached_percent",
    "all-in": "all_in_percent",
    "worst": "worst_percent",
    "over": "beyond_limit",
    "edits": "edit_evidence_percent",
    "names": "name_evidence_percent",
    "own": "own_words_evidence_percent",
    "reasoning": "reasoning_percent",
    "recent": "recent_reasoning_percent",
    "signed": "signed_recent_reasoning_percent",
    "mean": "mean_tokens",
    "peak": "peak_tokens",
}

COLUMNS_NOTE = """\
cost: of all prompts, as a share of plain Pi's; reached: the share of the saving with hindsight;
all-in: the cost with one more call for each call that lacked something; worst: the session that is
dearest beside plain Pi; over: sessions that cost more than the best of plain Pi, its compaction at
100k and masks, by over 2% and 2,000 tokens; edits, names, own: shares in view of the edited texts,
of the names of code that can only have been copied from a tool result, and of those that only the
model's own answers had held; reasoning, recent, signed: what a provider would still accept of all
reasoning, of that of the last 20 calls, and of what is signed there; mean, peak: tokens of a
prompt. Sizes are calibrated by the recorded usage. Evidence is visibility, not success: no model
ran."""


def printed(compared: Compared) -> str:
    """The table for people, with a last row for what nobody can beat."""
    rows = [("", *_COLUMNS, "rebases")]
    for row in compared.table:
        cells = (_cell(name, row[name]) for name in _COLUMNS.values())
        reasons = " ".join(f"{reason} {count}" for reason, count in row["rebases"].items())
        rows.append((row["row"], *cells, reasons))
    bound = sum(session.hindsight for session in compared.sessions)
    least = percent(bound, total(compared.sessions, PLAIN).cost)
    rows.append(("with hindsight", _cell("", least), "100.0", *[""] * (len(_COLUMNS) - 1)))
    return table(rows)


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    return short_count(int(value)) if name.endswith("_tokens") else str(value)
