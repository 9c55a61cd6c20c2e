"""What is still found of early messages at the end of a very long session, and what it has cost.

The same joined session goes through the engine with observations and without, and through what
stands for plain Pi: its compactions, with a summary as long as recorded ones. No model runs. The
summaries of all three are made by the same rules, so what differs is what each keeps.
"""

from __future__ import annotations

import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from foredeck.accounting.shapes import texts_of
from foredeck.cli.arguments import add_json_flag, positive
from foredeck.cli.output import Progress, print_json, table
from foredeck.cli.registry import Command
from foredeck.context.messages.shape import Message, find_faults, to_item
from foredeck.context.messages.transcript import TranscriptNames, split_turns
from foredeck.context.plan.plan import Plan
from foredeck.context.summary import SummaryInput, summarise
from foredeck.context.tools.found import NOT_UP_TO_DATE
from foredeck.engine.engine import Engine
from foredeck.errors import ToolError
from foredeck.histories.recordings import find_recordings
from foredeck.histories.records import Compaction, Transcript
from foredeck.model.call_values import CHARS_PER_TOKEN
from foredeck.model.figures import short_count
from foredeck.replay.options import ReplayOptions, plain_prompts
from foredeck.replay.replayed_session import ReplayedSession
from foredeck_bench.judging.compacting import SUMMARY_TOKENS, compactions_at
from foredeck_bench.judging.judge import Judge, SessionFacts
from foredeck_bench.judging.replaying import Way, rule_of
from foredeck_bench.long_session import (
    SPEAKERS,
    PlantedFact,
    join_sessions,
    make_facts,
    write_session,
)

RESERVE_TOKENS = 16_384
"""What Pi leaves of the window before it compacts."""

POINTS = 100
"""Of the plot."""

INDEXING_TRIES = 50
"""The search index takes in what it can in two seconds, at each question."""

Advance = Callable[[], None]


@dataclass(slots=True)
class FactsFigures:
    """One way to go through the session. Costs are in uncached input tokens."""

    row: str
    cost: float = 0.0
    asked: float = 0.0
    """Of the cost: asking for observations."""
    questions: int = 0
    reflections: int = 0
    summaries: int = 0
    """Of the questions: those that condensed notes; of these, those that condensed condensed ones.
    """
    all_in: float = 0.0
    mean_tokens: int = 0
    peak_tokens: int = 0
    last_tokens: int = 0
    summed: float = 0.0
    """Tokens of all prompts."""
    invalid_prompts: int = 0
    in_prompt: float = 0.0
    """Share of the facts that stand in the last prompt."""
    found: float = 0.0
    """Share that stand there, or that one search finds."""
    found_by_speaker: dict[str, float] = field(default_factory=dict)
    points: list[tuple[int, int, int]] = field(default_factory=list)
    """Call, tokens of its prompt, cost so far."""


def run_facts(
    paths: Sequence[Path],
    calls: int,
    count: int,
    window: int,
    advance: Advance = lambda: None,
    *,
    eager: bool = False,
) -> dict[str, Any]:
    """The figures of all three. `eager`: observed from the first threshold on, not only where that
    pays. Raises `TranscriptError`."""
    planted = make_facts(count)
    joined = join_sessions(paths, calls, planted)
    facts = SessionFacts.of(joined)
    observed = ReplayOptions(window=window, observes=eager)
    without = ReplayOptions(window=window, settings=("observations=off",))
    rows = [
        _through_engine("with observations", joined, facts, planted, observed, advance),
        _through_engine("summary without a model", joined, facts, planted, without, advance),
        _plain("plain Pi, compacting", joined, facts, planted, window, advance),
    ]
    return {
        "calls": len(joined.calls),
        "messages": len(joined.messages),
        "facts": count,
        "window": window,
        "rows": [asdict(row) for row in rows],
    }


def _through_engine(
    name: str,
    joined: Transcript,
    facts: SessionFacts,
    planted: Sequence[PlantedFact],
    options: ReplayOptions,
    advance: Advance,
) -> FactsFigures:
    judge = Judge(facts, rule_of(options), more_tokens=Way(options).definition_tokens)
    figures, prompt = FactsFigures(name), list[Message]()
    with (
        tempfile.TemporaryDirectory(prefix="foredeck-facts-", ignore_cleanup_errors=True) as home,
        closing(ReplayedSession(Path(home), joined, options)) as session,
    ):
        for call in joined.calls:
            prompt, decision = session.call(call)
            judge.see(call, prompt, decision.reason if decision.is_rebase else None)
            if session.observer is not None:
                bill = session.observer.bill
                judge.judgement.asked, judge.judgement.questions = bill.cost, bill.questions
                figures.reflections, figures.summaries = bill.reflections, bill.summaries
            _note(figures, judge, prompt)
            advance()
        assert session.engine is not None
        _look_up(figures, planted, prompt, _searches(session.engine, planted))
    return figures


def _plain(
    name: str,
    joined: Transcript,
    facts: SessionFacts,
    planted: Sequence[PlantedFact],
    window: int,
    advance: Advance,
) -> FactsFigures:
    judge = Judge(facts, rule_of(ReplayOptions()))
    rate = facts.calibration
    limit = window - RESERVE_TOKENS - rate.head_tokens
    compactions = [
        Compaction(each.seen, each.kept_from, summary_before(joined, each.kept_from))
        for each in compactions_at(joined, limit, rate.chars_per_token)
    ]
    figures, prompt = FactsFigures(name), list[Message]()
    for call, prompt in zip(joined.calls, plain_prompts(joined, compactions), strict=True):
        judge.see(call, prompt)
        _note(figures, judge, prompt)
        advance()
    # A call that was cut off has no result here: Pi would put one in, what is replayed does not.
    figures.invalid_prompts = 0
    _look_up(figures, planted, prompt, {})
    return figures


def summary_before(joined: Transcript, until: int) -> str:
    """A summary of all messages before `until`, as long as those of a model are."""
    chat = Plan()
    for recorded in joined.messages[:until]:
        chat.append(to_item(recorded.message, recorded.entry, {}))
    names = TranscriptNames(lambda _id: None, joined.cwd)
    given = SummaryInput(split_turns(chat.items, 1), names, 0, lambda _path: None)
    return summarise(given, int(SUMMARY_TOKENS * CHARS_PER_TOKEN)).long


def _note(figures: FactsFigures, judge: Judge, prompt: Sequence[Message]) -> None:
    judgement = judge.judgement
    last = judgement.summed - figures.summed
    figures.summed = judgement.summed
    figures.points.append((judgement.calls, round(last), round(judgement.cost)))
    figures.invalid_prompts += bool(find_faults(prompt))
    figures.cost, figures.asked = round(judgement.cost), round(judgement.asked)
    figures.questions, figures.all_in = judgement.questions, round(judgement.all_in)
    figures.mean_tokens = round(judgement.summed / judgement.calls)
    figures.peak_tokens, figures.last_tokens = round(judgement.peak), round(last)


def _searches(engine: Engine, planted: Sequence[PlantedFact]) -> dict[str, str]:
    """What one search answers to the question for each fact."""
    opened = engine.opened
    assert opened is not None
    tool = opened.facilities.tools["memory-search"]

    def search(question: str) -> str:
        try:
            return tool.run({"query": question, "scope": "session"}, "asked")
        except ToolError as error:
            return str(error)

    for _ in range(INDEXING_TRIES):
        if NOT_UP_TO_DATE not in search(planted[0].question):
            break
    return {fact.value: search(fact.question) for fact in planted}


def _look_up(
    figures: FactsFigures,
    planted: Sequence[PlantedFact],
    prompt: Iterable[Message],
    searched: dict[str, str],
) -> None:
    shown = "\n".join(text for message in prompt for text in texts_of(message))
    seen = {fact.value for fact in planted if fact.value in shown}
    found = seen | {value for value, answer in searched.items() if value in answer}
    figures.in_prompt = _share(planted, seen)
    figures.found = _share(planted, found)
    for speaker in SPEAKERS:
        own = [fact for fact in planted if fact.speaker == speaker]
        figures.found_by_speaker[speaker] = _share(own, found)
        figures.found_by_speaker[f"{speaker}, in the prompt"] = _share(own, seen)
    figures.points = list(_thinned(figures.points))


def _share(planted: Sequence[PlantedFact], values: set[str]) -> float:
    return round(sum(fact.value in values for fact in planted) / len(planted), 3) if planted else 0


def _thinned(points: Sequence[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    step = max(1, len(points) // POINTS)
    yield from points[step - 1 :: step]


# The command


_HEAD = ("", "cost", "asked", "all-in", "mean", "peak", "last", "in prompt", "found")


def _run(args: Namespace) -> int:
    paths = find_recordings(args.paths)
    if args.write is not None:
        write_session(join_sessions(paths, args.calls, make_facts(args.facts)), args.write)
    with Progress("replaying", total=3 * args.calls) as progress:
        result = run_facts(
            *(paths, args.calls, args.facts, args.window, lambda: progress.advance()),
            eager=args.eager,
        )
    if args.plot is not None:
        title = f"{result['calls']:,} calls of one session, joined from recorded ones"
        args.plot.write_text(facts_svg(result["rows"], title), encoding="utf-8")
    if args.json:
        print_json(result)
    else:
        _print(result)
    return 1 if any(row["invalid_prompts"] for row in result["rows"]) else 0


def _print(result: dict[str, Any]) -> None:
    print(table([_HEAD, *map(_row, result["rows"])]))
    print(
        "\ncost: of all prompts and questions, in uncached input tokens; asked: of it, for "
        "observations;\nall-in: with one more call for each call that lacked something; mean, "
        "peak, last: tokens of a\nprompt; in prompt: share of the planted facts that stand in the "
        "last one; found: there or by\none search (plain Pi has none). No model ran: all "
        "summaries and notes are made by rules."
    )
    for row in result["rows"]:
        shares = (f"{name} {100 * s:.0f}%" for name, s in row["found_by_speaker"].items())
        print(f"{row['row']}: {', '.join(shares)}")
    for row in result["rows"]:
        if row["questions"]:
            condensed, again = row["reflections"], row["summaries"]
            print(
                f"{row['questions']} questions; {condensed} condensed notes, {again} of them again."
            )
    print(f"{result['calls']:,} calls, {result['messages']:,} messages, {result['facts']} facts.")


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["row"],
        short_count(round(row["cost"])),
        f"{row['questions']}: {short_count(round(row['asked']))}",
        short_count(round(row["all_in"])),
        *(short_count(row[name]) for name in ("mean_tokens", "peak_tokens", "last_tokens")),
        f"{100 * row['in_prompt']:.1f}%",
        f"{100 * row['found']:.1f}%",
    )


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "paths", metavar="PATH", nargs="+", type=Path, help="session files of Pi, or folders"
    )
    parser.add_argument(
        "--calls", type=positive, default=3000, help="of the joined session (default: 3000)"
    )
    parser.add_argument("--facts", type=positive, default=90, help="to plant (default: 90)")
    parser.add_argument(
        "--window", type=positive, default=200_000, help="of the model, in tokens (default: 200000)"
    )
    parser.add_argument(
        "--eager",
        action="store_true",
        help="observe from the first threshold on, not only where that pays",
    )
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the joined session")
    parser.add_argument(
        "--plot", metavar="FILE", type=Path, help="write prompt size and cost by call, as SVG"
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Join recorded sessions into one of thousands of calls, plant facts in its early\n"
        "messages, and say at its end which of them are found, and what the session has cost:\n"
        "with observations, with a summary without a model, and with compactions as plain Pi\n"
        "makes them. Exit code 1: a provider would refuse a prompt."
    ),
    example="foredeck bench facts ../shared/transcripts --plot facts.svg",
    configure=_configure,
    run=_run,
)


# The chart


WIDTH, HEIGHT, LEFT, TOP, GAP = 860, 260, 90, 40, 60
COLOURS = ("#0b6e4f", "#c8553d", "#345995", "#8a6d3b")

Point = Sequence[float]


def facts_svg(rows: Sequence[Mapping[str, Any]], title: str) -> str:
    """Two panels above each other: tokens of each prompt, and the cost so far, by call."""
    height = TOP + 2 * (HEIGHT + GAP) + 20 * len(rows)
    panels = [
        _panel(rows, 1, "tokens of the prompt", TOP),
        _panel(rows, 2, "cost so far, in uncached input tokens", TOP + HEIGHT + GAP),
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 40}" '
            f'height="{height}" font-family="sans-serif" font-size="13">',
            '<rect width="100%" height="100%" fill="white"/>',
            f'<text x="{LEFT}" y="24" font-size="15">{escape(title)}</text>',
            *panels,
            *_legend(rows, TOP + 2 * (HEIGHT + GAP)),
            "</svg>\n",
        ]
    )


def _panel(rows: Sequence[Mapping[str, Any]], column: int, label: str, top: int) -> str:
    most = max((p[column] for row in rows for p in row["points"]), default=1) or 1
    last = max((p[0] for row in rows for p in row["points"]), default=1) or 1
    lines = [
        f'<text x="{LEFT}" y="{top + 12}">{label}</text>',
        f'<path d="M{LEFT} {top + 20}V{top + HEIGHT}H{LEFT + WIDTH}" fill="none" stroke="#888"/>',
        f'<text x="{LEFT - 6}" y="{top + 24}" text-anchor="end">{_short(most)}</text>',
        f'<text x="{LEFT - 6}" y="{top + HEIGHT}" text-anchor="end">0</text>',
        f'<text x="{LEFT + WIDTH}" y="{top + HEIGHT + 18}" text-anchor="end">call {last:,}</text>',
    ]
    for number, row in enumerate(rows):
        heights = ((p[0] / last, (HEIGHT - 20) * p[column] / most) for p in row["points"])
        places = (f"{LEFT + WIDTH * x:.1f},{top + HEIGHT - y:.1f}" for x, y in heights)
        lines.append(
            f'<polyline points="{" ".join(places)}" fill="none" stroke-width="1.6" '
            f'stroke="{COLOURS[number % len(COLOURS)]}"/>'
        )
    return "\n".join(lines)


def _legend(rows: Sequence[Mapping[str, Any]], top: int) -> list[str]:
    return [
        f'<text x="{LEFT}" y="{top + 20 * number}" fill="{COLOURS[number % len(COLOURS)]}">'
        f"{escape(row['row'])}</text>"
        for number, row in enumerate(rows)
    ]


def _short(value: float) -> str:
    return f"{value / 1e6:.1f}M" if value >= 1e6 else f"{value / 1000:.0f}k"
