"""Recorded sessions, read out turn by turn with a fixed extractor: what is kept, what waits, what
is refused and why, how much of it is junk, and what the questions would cost."""

from __future__ import annotations

import re
import tempfile
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foredeck.cli.arguments import add_json_flag
from foredeck.cli.output import Progress
from foredeck.cli.registry import Command
from foredeck.config import Config
from foredeck.histories.ingesting import ingest_files
from foredeck.histories.recordings import history_files
from foredeck.memory.entry import MemoryCaps
from foredeck.memory.extracting import AskedTurns, ExtractionMemory, read_out, texts_of_turns
from foredeck.memory.judging import (
    SYSTEM,
    Saying,
    is_worth_asking,
    question,
    within_bounds,
)
from foredeck.memory.trust import User, session_statement
from foredeck.memory.user_acts import UserActs
from foredeck.memory.words import content_words, says_it_lasts
from foredeck.model.documents import Fields, SessionDocument, session_object_id
from foredeck.model.records import turn_id
from foredeck.store.kind import open_store
from foredeck.store.protocol import Batch, Store
from foredeck_bench.arguments import print_figures
from foredeck_bench.remembering.junk import junk_of

CHARS_PER_TOKEN = 4
INPUT_PRICE, OUTPUT_PRICE = 3e-6, 15e-6
"""Dollars for a token, as of a model of the middle class."""
_USER = User(b"r" * 32)
_ALL = MemoryCaps(session=100_000, everywhere=100_000)


@dataclass
class ReadOutTally:
    """What came of all answers."""

    sessions: int = 0
    questions: int = 0
    unasked: int = 0
    """User turns in which nothing was said that could be kept."""
    lines: int = 0
    kept: Counter[str] = field(default_factory=Counter)
    proposed: Counter[str] = field(default_factory=Counter)
    tool_originated: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    asked_chars: int = 0
    answered_chars: int = 0
    sessions_cost: float = 0.0
    """What the recorded sessions have cost by their own account, in dollars."""

    def to_json(self) -> dict[str, Any]:
        """As the bench prints it."""
        tokens = self.asked_chars / CHARS_PER_TOKEN, self.answered_chars / CHARS_PER_TOKEN
        cost = tokens[0] * INPUT_PRICE + tokens[1] * OUTPUT_PRICE
        share = round(cost / self.sessions_cost, 4) if self.sessions_cost else None
        return {
            **{name: getattr(self, name) for name in ("sessions", "questions", "unasked", "lines")},
            **{
                name: dict(sorted(getattr(self, name).items()))
                for name in ("kept", "proposed", "refused")
            },
            "tool_originated": self.tool_originated,
            "tokens": {"asked": round(tokens[0]), "answered": round(tokens[1])},
            "cost": round(cost, 4),
            "sessions_cost": round(self.sessions_cost, 4),
            "share": share,
        }


def measure_recorded(paths: Iterable[Path], advance: Callable[[], None]) -> dict[str, Any]:
    """Take sessions into a private store and read them out, as if this user had typed their user
    messages. In the end everything that waits is accepted, so that the junk rate is that of a user
    who refuses nothing."""
    tally = ReadOutTally()
    with tempfile.TemporaryDirectory(prefix="foredeck-recorded-") as name:
        config = Config(home=Path(name))
        with closing(open_store(config)) as store:
            ingest_files(store, history_files(paths))
            extractor = FixedExtractor()
            for head in store.query("session"):
                _read_session(store, str(head.fields["session_id"]), extractor, tally)
                advance()
            junk = junk_of(UserActs(store, _USER, _ALL))
    found = tally.to_json()
    found["junk"] = {
        "kept": junk.kept,
        "duplicates": len(junk.duplicates),
        "unused": len(junk.unused),
        "rate": round(junk.rate, 4),
    }
    return found


def _read_session(
    store: Store, session: str, extractor: FixedExtractor, tally: ReadOutTally
) -> None:
    wrapper = store.get(session_object_id(session), SessionDocument)
    if wrapper is None:
        return
    wrapper.begun_by = _USER.vouch(session_statement(session))
    store.commit(Batch([wrapper.seal()]))
    memory = ExtractionMemory(store, _USER, _ALL, by=session)
    deciding = UserActs(store, _USER, _ALL, by=session)
    first = 1
    for last in _ends(store, session, tally):
        sayings, tools = texts_of_turns(store, session, first, last)
        if not is_worth_asking(sayings):
            tally.unasked += 1
            continue
        shown = within_bounds(sayings)
        answer = extractor.answer(shown)
        tally.questions += 1
        tally.asked_chars += len(SYSTEM) + len(question(shown, "0" * 20))
        tally.answered_chars += len(answer)
        typed = [saying.text for saying in sayings if saying.role == "user"]
        turns = AskedTurns(session, None, first, last, tools, shown, typed=typed)
        judged, _taken = read_out(memory, turns, answer, "user-stated")
        first = last + 1
        for line in judged:
            tally.lines += 1
            tally.tool_originated += line.tool_originated
            if line.reason is not None:
                tally.refused[line.reason] += 1
            else:
                (tally.kept if line.fate == "keep" else tally.proposed)[line.category] += 1
        for entry in deciding.proposals():
            deciding.accept(entry.id)
    tally.sessions += 1


def _ends(store: Store, session: str, tally: ReadOutTally) -> Iterator[int]:
    """The numbers of the turns with which user turns end; counts what the turns have cost."""
    number, user_turn = 0, None
    while (head := store.head(turn_id(session, number + 1))) is not None:
        if user_turn not in (None, head.fields["user_turn"]):
            yield number
        number, user_turn = number + 1, head.fields["user_turn"]
        tally.sessions_cost += _cost(head.fields)
    if number:
        yield number


def _cost(turn: Fields) -> float:
    usage = (turn.get("assistant_meta") or {}).get("usage")
    cost = usage.get("cost") if isinstance(usage, dict) else None
    total = cost.get("total") if isinstance(cost, dict) else None
    return float(total) if isinstance(total, int | float) else 0.0


# The command


MOST_JUNK = 0.1


def _run(args: Namespace) -> int:
    with Progress("reading out sessions") as progress:
        found = measure_recorded(args.path, progress.advance)
    print_figures(found, args)
    return 0 if found["junk"]["rate"] < MOST_JUNK else 1


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "path", metavar="PATH", nargs="+", type=Path, help="histories: files or folders"
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Read recorded sessions out turn by turn, with an extractor that answers by fixed rules,\n"
        "some of it malformed, twice, about itself or made up: lines kept, proposed, refused and\n"
        "why, the junk rate of a user who accepts everything, and what the questions would cost.\n"
        "Exit code 1 where the junk rate is 10% or more."
    ),
    example="foredeck bench extraction ../shared/transcripts --json",
    configure=_configure,
    run=_run,
)


# The extractor


_SENTENCE = re.compile(r"[^\n.!?]+(?:[.!?](?=\S)[^\n.!?]*)*[.!?]?")
_SETTLED = re.compile(r"\b(?:decided|going with|went with|instead of|chose|settled on)\b", re.I)
_HOLDS = re.compile(
    r"\b(?:uses?|stores?|lives? in|is in|requires?|depends? on|defaults? to)\b", re.I
)
_MOST = 6
_LONGEST = 200
_CHATTER = "Here is what I would remember of this conversation:"
_OWN_CATEGORY = "identity|turn-1|User is an experienced engineer.|engineer"
_ITSELF = "preference|turn-1|The assistant must always confirm before it acts.|confirm"
_MADE_UP = "fact|turn-1|The nightly build runs on a Kubernetes cluster in Oregon.|nightly cluster"


class FixedExtractor:
    """Answers one question after the other; the same questions get the same answers."""

    def __init__(self) -> None:
        self._asked = 0
        self._before: list[str] = []

    def answer(self, sayings: Sequence[Saying]) -> str:
        """The lines that it would remember of what it was shown."""
        self._asked += 1
        lines = [*dict.fromkeys(_lines(sayings))][:_MOST]
        noise = ((4, self._before[:1]), (5, [_CHATTER]), (7, [_OWN_CATEGORY]), (9, [_ITSELF]))
        for every, more in (*noise, (11, [_MADE_UP])):
            lines += more if self._asked % every == 0 else []
        self._before = lines
        return "\n".join(lines) or "NONE"


def _lines(sayings: Sequence[Saying]) -> Iterator[str]:
    for saying in sayings:
        sentences = [" ".join(part.split()) for part in _SENTENCE.findall(saying.text)]
        usable = [each for each in sentences if len(each) <= _LONGEST and "|" not in each]
        about = (each for each in usable if len(content_words(each)) >= 4)
        if saying.role == "user":
            first = next(about, None)
            yield from (_line("preference", saying, s) for s in usable if says_it_lasts(s))
            if first is not None:
                yield _line("context", saying, first)
            continue
        for sentence in about:
            if _SETTLED.search(sentence):
                yield _line("decision", saying, sentence)
            elif _HOLDS.search(sentence) and "`" in sentence:
                yield _line("fact", saying, sentence)


def _line(category: str, saying: Saying, sentence: str) -> str:
    return f"{category}|turn-{saying.number}|{sentence}|{sentence}"
