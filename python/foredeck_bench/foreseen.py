"""How well can it be told, after a pause, which contents an agent goes on to edit or to name?

    python -m foredeck_bench.foreseen [--jobs N] PATH...

Where nothing of a prompt is cached, folding is free, and a score in place of an age would decide
best, if one could be had. This takes recorded sessions to each such call with everything kept that
the pause would fold, notes of each content what is known of it then and whether it was needed in
the next calls, and fits logistic regression. What is printed by repository was fitted without it.
"""

from __future__ import annotations

import math
import posixpath
import sys
import tempfile
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from foredeck.accounting.shapes import is_sent, texts_of
from foredeck.cli.output import table
from foredeck.context.plan.ops import PieceRef
from foredeck.context.policies.pieces import pieces_of
from foredeck.context.policies.policy import (
    ActiveContent,
    FoldablePiece,
    History,
    Policy,
    PolicyDecision,
    UseRule,
)
from foredeck.context.state.opening import Session
from foredeck.errors import ForedeckError
from foredeck.histories.recordings import find_recordings, load_recording
from foredeck.histories.records import Transcript
from foredeck.model.figures import counted
from foredeck.model.names import identifiers
from foredeck.replay.options import ReplayOptions
from foredeck.replay.replayed_session import ReplayedSession
from foredeck.sources.tool_calls import path_argument
from foredeck_bench.judging.evidence import Needs, needs_of
from foredeck_bench.logistic import Observed, Row, area_under_curve, fit
from foredeck_bench.weigh import repository_of

AHEAD_CALLS = 40
"""For how many calls a content is looked for in what the agent did: about as long as its price of
being read reaches that of being written once more."""

FEATURES = (
    *("intercept", "size", "calls since its last use", "turns since", "unused in this turn"),
    *("of an edited file", "a result", "a read", "a command's", "an answer"),
    *("a file's", "code", "minutes of pause"),
)

CODE = frozenset(
    (
        *(".c", ".cpp", ".css", ".go", ".html", ".java", ".js", ".jsx", ".py", ".rb", ".rs"),
        *(".sh", ".sql", ".ts", ".tsx"),
    )
)

THINNED = 4
"""Of what was not needed every fourth content is fitted, and counts as four."""


@dataclass(frozen=True, slots=True)
class Met:
    """A content at a call with a cold cache: what was known of it, and what came of it."""

    row: Row
    edited: bool
    named: bool


def main(arguments: Sequence[str]) -> int:
    """Replay, fit, and print what was found. Returns the exit code."""
    parser = ArgumentParser(prog="python -m foredeck_bench.foreseen", description=__doc__)
    parser.add_argument("paths", metavar="PATH", nargs="+", type=Path)
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: %(default)s)")
    asked = parser.parse_args(arguments)
    try:
        paths = find_recordings(asked.paths)
        with ProcessPoolExecutor(max_workers=asked.jobs) as pool:
            found = list(zip(map(repository_of, paths), pool.map(met_in, paths), strict=True))
    except ForedeckError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print("\n".join(report(found)))
    return 0


def report(found: Sequence[tuple[str, Sequence[Met]]]) -> Iterator[str]:
    """The lines: by repository, what a fit without it makes of it; then the weights of all."""
    met: dict[str, list[Met]] = {}
    for repository, each in found:
        met.setdefault(repository, []).extend(each)
    for what in ("edited", "named"):
        cases = {
            name: [Observed(m.row, getattr(m, what)) for m in own] for name, own in met.items()
        }
        yield f"\n{what} within {counted(AHEAD_CALLS, 'call')}:"
        yield from _held_out(cases)
        weights = fit(_thinned([case for own in cases.values() for case in own])).weights
        yield ", ".join(f"{n} {w:+.2f}" for n, w in zip(FEATURES, weights, strict=True))


def _held_out(cases: dict[str, list[Observed]]) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [
        ("", "contents", "needed", "share", "foreseen share", "area under curve")
    ]
    scored: list[tuple[float, bool]] = []
    for name, own in sorted(cases.items()):
        others = [case for other in cases if other != name for case in cases[other]]
        if not own or not any(case.happened for case in others):
            continue
        fitted = fit(_thinned(others))
        pairs = [(fitted.chance(case.row), case.happened) for case in own]
        scored += pairs
        rows.append(_line(name, pairs))
    yield table([*rows, _line("all", scored)] if scored else rows)


def _line(name: str, scored: Sequence[tuple[float, bool]]) -> tuple[str, ...]:
    needed, count, area = sum(yes for _, yes in scored), len(scored), area_under_curve(scored)
    foreseen = sum(chance for chance, _ in scored) / count
    shares = f"{100 * needed / count:.2f}%", f"{100 * foreseen:.2f}%"
    return name, str(count), str(needed), *shares, "-" if area is None else f"{area:.2f}"


def _thinned(cases: Sequence[Observed]) -> list[Observed]:
    happened = [case for case in cases if case.happened]
    others = [case for case in cases if not case.happened][::THINNED]
    return happened + [replace(case, weight=float(THINNED)) for case in others]


def met_in(path: Path) -> list[Met]:
    """Every content at every call of a session that came after the cache had expired."""
    transcript = load_recording(path)
    needs = needs_of(transcript)
    found: list[Met] = []
    with (
        tempfile.TemporaryDirectory(prefix="foredeck-foreseen-") as home,
        closing(ReplayedSession(Path(home), transcript, ReplayOptions())) as replayed,
    ):
        keeper: KeepingAtPauses | None = None
        last_ms = 0
        for number, call in enumerate(transcript.calls):
            replayed.call(call)
            opened = replayed.engine.opened if replayed.engine else None
            if keeper is None and opened is not None:
                keeper = KeepingAtPauses(opened.assembler.policy, opened.session)
                opened.assembler.policy = keeper
            elif keeper is not None and keeper.taken:
                ahead = needs[number : number + AHEAD_CALLS]
                needed = _needed(transcript, call.seen, ahead)
                pause = math.log1p(max(0, call.time_ms - last_ms) / 60_000)
                found += [needed.judge(keeper, ref, (*row, pause)) for ref, row in keeper.take()]
            last_ms = call.time_ms
    return found


@dataclass(frozen=True, slots=True)
class Needed:
    """What the agent needed in the calls ahead of what stood before them, by message."""

    texts: dict[int, list[str]]
    named: frozenset[int]
    """Results with a name that only they held."""

    def judge(self, keeper: KeepingAtPauses, ref: PieceRef, row: Row) -> Met:
        """One content with what came of it."""
        edited = any(text in keeper.text(ref) for text in self.texts.get(ref.message, ()))
        return Met(row, edited, not ref.slot and ref.message in self.named)


def _needed(transcript: Transcript, seen: int, ahead: Sequence[Needs]) -> Needed:
    names = [name for needs in ahead for name, holder in needs.names.items() if holder < seen]
    held: Counter[str] = Counter()
    for recorded in transcript.messages[:seen]:
        message = recorded.message
        texts = texts_of(message) if is_sent(message) else []
        held.update(frozenset(names) & frozenset[str]().union(*map(identifiers, texts)))
    edited: dict[int, list[str]] = {}
    for text, holder in (edit for needs in ahead for edit in needs.edits):
        if holder is not None and holder < seen:
            edited.setdefault(holder, []).append(text)
    holders = (h for needs in ahead for name, h in needs.names.items() if held[name] == 1)
    return Needed(edited, frozenset(holders))


class KeepingAtPauses:
    """A policy that lets nothing go of what a cold cache would let go, and notes what is there."""

    def __init__(self, policy: Policy, session: Session) -> None:
        self.taken: list[tuple[PieceRef, Row]] = []
        self._policy, self._session = policy, session

    @property
    def name(self) -> str:
        """That of the policy."""
        return self._policy.name

    @property
    def use_rule(self) -> UseRule | None:
        """That of the policy."""
        return self._policy.use_rule

    def decide(self, history: History) -> PolicyDecision:
        """What the policy decides; while the cache is cold, of thinking and old halves alone."""
        decision = self._policy.decide(history)
        if not history.cold:
            return decision
        met: list[ActiveContent | FoldablePiece] = list(history.contents)
        met += [piece for piece in history.pieces if piece.kind in ("argument", "answer")]
        self.taken = [(each.ref, self._row(each)) for each in met]
        stays = {ref for ref, _ in self.taken}
        return replace(decision, foldable=decision.foldable - stays)

    def take(self) -> list[tuple[PieceRef, Row]]:
        """What was there at the newest call, once."""
        taken, self.taken = self.taken, []
        return taken

    def text(self, ref: PieceRef) -> str:
        """A content as the host had it."""
        item = self._session.chat.branch.plan.items[ref.message]
        if not ref.slot:
            return item.text
        return "\n".join(piece.text for piece in pieces_of(item) if piece.slot == ref.slot)

    def _row(self, each: ActiveContent | FoldablePiece) -> Row:
        plan = self._session.chat.branch.plan
        item = plan.items[each.ref.message]
        arguments = item.arguments or next((call.arguments for call in item.calls), {})
        path = path_argument(arguments) or ""
        answer = isinstance(each, FoldablePiece) and each.kind == "answer"
        return (
            *(1.0, math.log1p(each.chars / 100), math.log1p(each.age)),
            *(math.log1p(plan.turn - item.turn), each.idle, each.of_edited),
            *(not each.ref.slot, item.tool == "read", item.tool == "bash", answer),
            *(bool(path), posixpath.splitext(path)[1] in CODE),
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
