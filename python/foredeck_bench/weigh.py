"""Weighs rules and constants against each other over sets of recorded sessions.

    python -m foredeck_bench.weigh [--jobs N] [--variant NAME:KEY=VALUE,...]... PATH...

Each PATH is a set of its own, so that what was found on one can be tested on another. First stand
what plain Pi costs and shows, without compaction all that a recording holds; the simple rules that
a user could have had instead; and the least that a session could cost with hindsight, `reached`
being the share of that saving. The first variant is what the others are compared with; without any
it is the default. For each of the others a table says by repository what it changes, and what it
changes over all repositories but one: a rule that pays in only one of them has learned that one.
Last come the sessions in which the first variant costs more than the best of the simple rules, by
over 2% and 2,000 tokens (the column `over` counts them), or all sessions (--sessions).
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from foredeck.accounting.cache import CACHES, chars_of
from foredeck.cli.output import Progress, table
from foredeck.context.messages.shape import Message
from foredeck.errors import ForedeckError
from foredeck.model.call_values import DEFAULT_TTL_S
from foredeck.model.figures import counted, short_count
from foredeck_agents.histories.recordings import find_recordings, load_recording, stem_of
from foredeck_agents.histories.records import Transcript
from foredeck_bench.hindsight import head_cost, hindsight_cost
from foredeck_bench.judging.comparison import (
    LOWER,
    ON_DEMAND,
    PLAIN,
    WITHOUT,
    Comparison,
    Way,
    is_beyond,
    judge_replay,
    rule_of,
)
from foredeck_bench.judging.evidence import ReasoningShare
from foredeck_bench.judging.judge import Judgement, SessionFacts
from foredeck_lab.replay.options import ReplayedModel, ReplayOptions, replayed_model

NEWEST = 10
"""Results that stay."""

MASK = "[an old result that is not shown any more]"


def masked_prompts(transcript: Transcript) -> Iterator[list[Message]]:
    """Each call's prompt with all but the newest results masked."""
    messages = [recorded.message for recorded in transcript.messages]
    results = [i for i, message in enumerate(messages) if message.get("role") == "toolResult"]
    prompt: list[Message] = []
    masked = 0
    for call in transcript.calls:
        prompt += messages[len(prompt) : call.seen]
        result_count = sum(index < call.seen for index in results)
        for index in results[masked : max(masked, result_count - NEWEST)]:
            if chars_of(messages[index]) > len(MASK):
                prompt[index] = {**messages[index], "content": [{"type": "text", "text": MASK}]}
        masked = max(masked, result_count - NEWEST)
        yield list(prompt)


HEAD = (
    *("", "cost", "reached", "all-in", "edits", "names", "code", "bare", "own"),
    *("worst", "over", "all reasoning", "recent", "turn", "signed", "rebases"),
)

MASKED = "the newest 10 results, others masked"
SIMPLE = (PLAIN, LOWER, MASKED)
"""What a user could have had instead, without charge for Pi's summaries."""

RIVALS = (PLAIN, WITHOUT, LOWER, ON_DEMAND, MASKED)

HINDSIGHT = "with hindsight"

Load = Callable[[Path], Transcript]
"""Reads a session, perhaps as another wire's."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """One session's judgements, and its least cost with hindsight."""

    name: str
    repository: str
    judged: Mapping[str, Judgement]
    hindsight: float
    head: float

    @property
    def best_simple(self) -> str:
        """The simple rule that costs least."""
        return min(SIMPLE, key=lambda rule: self.judged[rule].cost)

    def is_dearer(self, row: str) -> bool:
        """Whether a row costs clearly more than the best simple rule."""
        return is_beyond(self.judged[row], self.judged[self.best_simple])


def main(arguments: Sequence[str]) -> int:
    parser = ArgumentParser(prog="python -m foredeck_bench.weigh", description=__doc__)
    parser.add_argument("paths", metavar="PATH", nargs="+", type=Path)
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: %(default)s)")
    parser.add_argument("--cache", choices=tuple(CACHES), default="ideal")
    parser.add_argument(
        "--variant", type=_variant, action="append", default=[], help="NAME:KEY=VALUE,KEY=VALUE"
    )
    parser.add_argument("--sessions", action="store_true", help="print a line for each session")
    parser.add_argument("--as", dest="as_model", help="as if this model had answered")
    parser.add_argument("--warm", action="store_true", help="with --as: as warmed by Pi")
    parser.add_argument("--ttl", type=float, help="seconds that the cache lives")
    chosen = parser.parse_args(arguments)
    try:
        model = replayed_model(chosen.as_model) if chosen.as_model else None
        load = partial(_load, model)
        ttl_s = chosen.ttl or (model.ttl_s if model else DEFAULT_TTL_S)
        prices = None if model else "claude-opus-4-5"
        options = ReplayOptions(
            cache=chosen.cache, ttl_s=ttl_s, prices=prices, as_model=model, warm=chosen.warm
        )
        variants = [
            Way(replace(options, settings=settings), name)
            for name, settings in chosen.variant or [("default", ())]
        ]
        for path in chosen.paths:
            sessions = weigh(find_recordings([path]), variants, chosen.jobs, load)
            print(f"\n{path.name}: {counted(len(sessions), 'session')}\n")
            names = [each.name for each in variants]
            print("\n".join(report(sessions, names, by_session=chosen.sessions)))
    except ForedeckError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def weigh(
    paths: Sequence[Path], variants: Sequence[Way], jobs: int, load: Load = load_recording
) -> list[Weighed]:
    """Replays each session with each variant. Raises `ForedeckError`."""
    with Progress("replaying", total=len(paths)) as progress:
        weights: list[Weighed] = []
        with ProcessPoolExecutor(max_workers=jobs) as pool:
            for path, each in zip(
                paths, pool.map(partial(_weighed, variants, load), paths), strict=True
            ):
                weights.append(each)
                progress.advance(note=path.name)
    return weights


def report(
    sessions: Sequence[Weighed], names: Sequence[str], *, by_session: bool = False
) -> Iterator[str]:
    """The lines of a set: all, by repository, and the dear sessions."""
    plain = _sum(sessions, PLAIN)
    bound = sum(session.hindsight for session in sessions)
    rows = [_row(name, sessions, plain, bound) for name in (*RIVALS, *names)]
    best = (HINDSIGHT, _share(bound, plain.cost), "100.0", *[""] * (len(HEAD) - 3))
    yield table([HEAD, *rows, best])
    head = sum(session.head for session in sessions)
    yield f"system prompt and tools, which nothing changes: {_share(head, plain.cost)} of the cost"
    for name in names[1:]:
        yield f"\n{name}, against {names[0]}, in points of all-in and of edits in view:"
        yield from _by_repository(sessions, names[0], name)
    listed = [each for each in sessions if by_session or each.is_dearer(names[0])]
    if listed:
        yield f"\n{names[0]}, in tokens of uncached input, against the best of the simple rules:"
        yield table([_SESSION_HEAD, *(_session_row(each, names[0]) for each in listed)])


_SESSION_HEAD = ("", "calls", "cost", "with hindsight", "best", "costs", "dearer", "over")


def _session_row(session: Weighed, name: str) -> tuple[str, ...]:
    ours, best = session.judged[name], session.best_simple
    least = session.judged[best].cost
    return (
        session.name,
        str(ours.calls),
        short_count(round(ours.cost)),
        short_count(round(session.hindsight)),
        best,
        short_count(round(least)),
        f"{ours.cost - least:+,.0f} ({100 * (ours.cost / least - 1):+.1f}%)" if least else "-",
        "over" if session.is_dearer(name) else "",
    )


def _load(model: ReplayedModel | None, path: Path) -> Transcript:
    transcript = load_recording(path)
    return transcript if model is None else model.answering(transcript)


def _weighed(variants: Sequence[Way], load: Load, path: Path) -> Weighed:
    transcript = load(path)
    facts, rule = SessionFacts.of(transcript), rule_of(variants[0].options)
    comparison = Comparison(rule)
    comparison.add_plain(transcript, facts)
    comparison.add_prompts(MASKED, transcript, facts, masked_prompts(transcript))
    for each in variants:
        comparison.add(each.label, judge_replay(transcript, facts, each, comparison))
    judged = {row: listed[0] for row, listed in comparison.rows.items()}
    bound = hindsight_cost(transcript, facts, rule)
    head = head_cost(transcript, facts, rule)
    return Weighed(stem_of(path), repository_of(path), judged, bound, head)


def repository_of(path: Path) -> str:
    """`owner/name` of a file `owner__name__...`, else the folder."""
    parts = path.stem.split("__")
    return "/".join(parts[:2]) if len(parts) > 2 else path.parent.name


def _variant(text: str) -> tuple[str, tuple[str, ...]]:
    name, _, settings = text.partition(":")
    pairs = tuple(pair for pair in settings.split(",") if pair)
    if not name or not all("=" in pair for pair in pairs):
        raise ArgumentTypeError(f"{text!r} is not NAME:KEY=VALUE,KEY=VALUE")
    return name, pairs


def _sum(sessions: Sequence[Weighed], row: str) -> Judgement:
    total = Judgement(sessions[0].judged[row].rule) if sessions else Judgement()
    for session in sessions:
        total.add(session.judged[row])
    return total


def _row(name: str, sessions: Sequence[Weighed], plain: Judgement, bound: float) -> tuple[str, ...]:
    sums = _sum(sessions, name)
    pairs = [(each.judged[name].cost, each.judged[PLAIN].cost) for each in sessions]
    dearer = sum(each.is_dearer(name) for each in sessions)
    return (
        name,
        _share(sums.cost, plain.cost),
        _share(plain.cost - sums.cost, plain.cost - bound),
        _share(sums.all_in, plain.cost),
        _share(sums.edits_seen, sums.edits),
        _share(sums.names_seen, sums.names),
        _share(sums.code_names_seen, sums.code_names),
        _share(sums.code_names_itself, sums.code_names),
        f"{_share(sums.own_words_seen, sums.own_words)} of {sums.own_words}",
        _share(*max(pairs, key=lambda pair: pair[0] / (pair[1] or 1))),
        str(dearer),
        *map(_kept, (sums.reasoning.all, sums.reasoning.recent, sums.reasoning.turn)),
        f"{_kept(sums.reasoning.signed)}, {_kept(sums.reasoning.signed_recent)}",
        " ".join(f"{reason} {count}" for reason, count in sorted(sums.rebases.items())),
    )


def _by_repository(sessions: Sequence[Weighed], base: str, name: str) -> Iterator[str]:
    groups: defaultdict[str, list[Weighed]] = defaultdict(list)
    for session in sessions:
        groups[session.repository].append(session)
    rows = [("", "calls", "all-in", "edits", "all-in without it", "edits without it")]
    for repository, own in sorted(groups.items()):
        rest = [each for each in sessions if each.repository != repository]
        calls = str(_sum(own, PLAIN).calls)
        without = _changes(rest, base, name) if rest else ("-", "-")
        rows.append((repository, calls, *_changes(own, base, name), *without))
    yield table(rows)


def _changes(sessions: Sequence[Weighed], base: str, name: str) -> tuple[str, str]:
    plain, before, after = (_sum(sessions, row) for row in (PLAIN, base, name))
    cost = 100 * (after.all_in - before.all_in) / plain.cost if plain.cost else 0.0
    edits = 100 * (after.edits_seen - before.edits_seen) / plain.edits if plain.edits else 0.0
    return f"{cost:+.2f}", f"{edits:+.2f}"


def _kept(share: ReasoningShare) -> str:
    return _share(share.accepted, share.produced)


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}" if whole else "-"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
