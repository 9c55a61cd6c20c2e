"""Finding what long conversations said, by questions with known answers.

Constants are chosen on odd conversations, and reported on even ones.
"""

from __future__ import annotations

import json
import random
import sqlite3
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foredeck.cli.arguments import add_json_flag, positive
from foredeck.cli.output import Progress, print_json, table
from foredeck.cli.registry import Command
from foredeck.derived.follower import Follower
from foredeck.errors import ForedeckError
from foredeck.model.names import WORD
from foredeck.search.index import Filters, SearchIndex
from foredeck.search.query import STOP_WORDS, Term, parse_query
from foredeck.search.ranking import Ranked
from foredeck.search.searching import ranked_entries
from foredeck.store.store import open_sqlite
from foredeck_agents.histories.ingesting import ingest_files
from foredeck_agents.histories.recordings import history_files
from foredeck_bench.figures import machine
from foredeck_bench.recall_scale import measure_scale, quantiles

ENOUGH = 50
"""Hits that must be the best."""

EXACT = 193
"""Three-word queries that one message has."""

USUAL = 10
"""Least messages with a usual word."""

SAMPLES = 1000
"""Resamples of an interval."""

Key = str
Order = Callable[["Question"], list[Key]]


class NoCorpus(ForedeckError):
    """The folder holds no corpus of questions."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a conversation."""

    key: Key
    session: str
    text: str
    time_ms: int


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    conversation: str
    category: str
    evidence: frozenset[Key]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Conversations by id, the working folder of each, and the questions."""

    messages: dict[str, list[Message]]
    folders: dict[str, str]
    questions: list[Question]

    @property
    def sessions(self) -> dict[Key, str]:
        """The session of each message."""
        return {one.key: one.session for many in self.messages.values() for one in many}

    def is_odd(self, question: Question) -> bool:
        """Whether it is of the first, third, … conversation."""
        return list(self.messages).index(question.conversation) % 2 == 0


@dataclass(frozen=True, slots=True)
class FirstRight:
    """Rank of the first right message and session."""

    message: int | None
    session: int | None


def read_corpus(folder: Path) -> Corpus:
    """Raises `NoCorpus`."""
    try:
        stored = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
        messages = {
            one["id"]: [
                Message(message["key"], session["id"], message["text"], message["time_ms"])
                for session in one["sessions"]
                for message in session["messages"]
            ]
            for one in stored["conversations"]
        }
        folders = {one["id"]: one["cwd"] for one in stored["conversations"]}
        questions = [
            Question(one["text"], one["conversation"], one["category"], frozenset(one["evidence"]))
            for one in stored["questions"]
        ]
    except OSError as error:
        raise NoCorpus(f"{folder / 'corpus.json'} cannot be read: {error.strerror}") from error
    except (ValueError, LookupError, TypeError) as error:
        raise NoCorpus(f"{folder / 'corpus.json'} is no corpus of questions: {error!r}") from error
    return Corpus(messages, folders, questions)


def measure_recall(folder: Path, advance: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """Indexes a corpus's histories in a scratch folder and asks all its questions."""
    corpus = read_corpus(folder)
    with _indexed(folder / "histories", advance) as index:
        times: list[float] = []
        orders = {
            "foredeck": _timed(_by_foredeck(corpus, index), times),
            "plain_fts5": _by_fts5(corpus),
        }
        results = {name: _all_found(corpus, order, advance) for name, order in orders.items()}
        exact = _exact(corpus, index)
    return {
        "questions": len(corpus.questions),
        "messages": len(corpus.sessions),
        "exact": exact,
        "latency_cpu_ms": quantiles(times),
        **{part: _compared(results, chosen) for part, chosen in _parts(corpus).items()},
    }


@contextmanager
def _indexed(histories: Path, advance: Callable[[], None]) -> Iterator[SearchIndex]:
    with tempfile.TemporaryDirectory(prefix="foredeck-recall-") as scratch:
        home = Path(scratch)
        with closing(open_sqlite(home / "foredeck.db")) as store:
            ingest_files(store, history_files([histories]))
            with Follower(store, "search", home) as follower:
                follower.catch_up(advance)
                yield SearchIndex(follower.db)


def _by_foredeck(corpus: Corpus, index: SearchIndex) -> Order:
    keys = _keys(corpus)
    scopes: dict[str, list[str]] = defaultdict(list)
    for session, folder in index.folders().items():
        scopes[folder].append(session)

    def order(question: Question) -> list[Key]:
        sessions = scopes[corpus.folders[question.conversation]]
        ranked = ranked_entries(index, question.text, Filters(tuple(sessions)), ENOUGH).best
        return _messages(index, ranked, keys)

    return order


def _by_fts5(corpus: Corpus) -> Order:
    """FTS5's own rank, for any word of a question."""
    db = sqlite3.connect(":memory:")
    names = {name: f"plain{number}" for number, name in enumerate(corpus.messages)}
    for name, messages in corpus.messages.items():
        db.execute(
            f"CREATE VIRTUAL TABLE {names[name]} USING fts5(text, tokenize = 'porter unicode61')"
        )
        texts = (one.text.encode("utf-8", "replace").decode() for one in messages)
        db.executemany(f"INSERT INTO {names[name]} (rowid, text) VALUES (?, ?)", enumerate(texts))

    def order(question: Question) -> list[Key]:
        table = names[question.conversation]
        match = " OR ".join(f'"{word}"' for word in dict.fromkeys(WORD.findall(question.text)))
        rows = db.execute(
            f"SELECT rowid FROM {table} WHERE {table} MATCH ? ORDER BY rank", (match,)
        )
        return [corpus.messages[question.conversation][id].key for (id,) in rows]

    return order


def _timed(order: Order, times: list[float]) -> Order:
    def timed(question: Question) -> list[Key]:
        start = time.process_time()
        hits = order(question)
        times.append(1000 * (time.process_time() - start))
        return hits

    return timed


def _all_found(corpus: Corpus, order: Order, advance: Callable[[], None]) -> list[FirstRight]:
    sessions = corpus.sessions
    ranks = []
    for question in corpus.questions:
        keys = order(question)
        right = {sessions[key] for key in question.evidence if key in sessions}
        session_ids = list(dict.fromkeys(sessions[key] for key in keys))
        ranks.append(FirstRight(_first(keys, question.evidence), _first(session_ids, right)))
        advance()
    return ranks


def _first(found: Iterable[str], right: Iterable[str]) -> int | None:
    right_keys = set(right)
    return next((place for place, one in enumerate(found, 1) if one in right_keys), None)


def _parts(corpus: Corpus) -> dict[str, list[int]]:
    parts: dict[str, list[int]] = {"all": [], "odd": [], "even": []}
    for number, question in enumerate(corpus.questions):
        half = "odd" if corpus.is_odd(question) else "even"
        for part in ("all", half, question.category):
            parts.setdefault(part, []).append(number)
    return parts


def _compared(found: dict[str, list[FirstRight]], numbers: Sequence[int]) -> dict[str, Any]:
    """Each search's figures, and foredeck's lead over FTS5 with its 95% bounds."""
    chosen = {name: [one[number] for number in numbers] for name, one in found.items()}
    ours, plain = chosen["foredeck"], chosen["plain_fts5"]
    gain = [_among(a.message, 10) - _among(b.message, 10) for a, b in zip(ours, plain, strict=True)]
    return {
        "questions": len(numbers),
        **{name: _figures(one) for name, one in chosen.items()},
        "ahead_of_fts5_hit@10": [round(100 * share, 1) for share in interval(gain)],
    }


def exact_queries(corpus: Corpus, index: SearchIndex, count: int) -> list[tuple[str, Key]]:
    """Queries of three usual words that exactly one message has."""
    chance = random.Random(1)
    messages = [one for many in corpus.messages.values() for one in many]
    chance.shuffle(messages)
    queries: list[tuple[str, Key]] = []
    for message in messages:
        words = dict.fromkeys(word.lower() for word in WORD.findall(message.text) if len(word) > 3)
        usual = [word for word in words if word not in STOP_WORDS]
        terms = parse_query(" ".join(chance.sample(usual, min(3, len(usual)))))
        if len(terms) == 3 and _has_one(terms, index):
            queries.append((" ".join(term.text for term in terms), message.key))
        if len(queries) == count:
            break
    return queries


def _has_one(terms: Sequence[Term], index: SearchIndex) -> bool:
    extent = index.extent(Filters())
    holders = [set(index.find(term, extent, Filters()).strengths) for term in terms]
    return min(map(len, holders)) >= USUAL and len(set.intersection(*holders)) == 1


def _exact(corpus: Corpus, index: SearchIndex) -> dict[str, float]:
    queries = exact_queries(corpus, index, EXACT)
    keys = _keys(corpus)
    places = []
    for query, key in queries:
        hits = _messages(index, ranked_entries(index, query, Filters(), 3).best[:3], keys)
        places.append(_first(hits, [key]))
    shares = {f"hit@{most}": _share([_among(place, most) for place in places]) for most in (1, 3)}
    return {"queries": len(queries), **shares}


def _keys(corpus: Corpus) -> dict[tuple[str, int], Key]:
    messages = (one for many in corpus.messages.values() for one in many)
    return {(one.session, one.time_ms): one.key for one in messages}


def _messages(
    index: SearchIndex, ranked: Sequence[Ranked], keys: dict[tuple[str, int], Key]
) -> list[Key]:
    entries = index.entries(one.id for one in ranked)
    places = ((entries[one.id].session or "", entries[one.id].time_ms) for one in ranked)
    return [keys[place] for place in places if place in keys]


def _figures(found: Sequence[FirstRight]) -> dict[str, float]:
    messages, sessions = [one.message for one in found], [one.session for one in found]
    return {
        **{
            f"hit@{most}": _share([_among(place, most) for place in messages])
            for most in (1, 5, 10)
        },
        "mrr": _share([1 / place if place else 0.0 for place in messages]),
        "session_hit@1": _share([_among(place, 1) for place in sessions]),
        "session_mrr": _share([1 / place if place else 0.0 for place in sessions]),
    }


def _among(place: int | None, most: int) -> float:
    return float(place is not None and place <= most)


def _share(values: Sequence[float]) -> float:
    return round(100 * sum(values) / max(1, len(values)), 1)


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean, and bounds of 95% of resamples' means."""
    chance, count = random.Random(1), len(values)
    means = sorted(sum(chance.choices(values, k=count)) / count for _ in range(SAMPLES))
    return sum(values) / count, means[SAMPLES // 40], means[-SAMPLES // 40]


# The command


def _run(args: Namespace) -> int:
    figures: dict[str, Any] = {}
    with Progress("bench recall") as progress:
        if args.corpus:
            figures = measure_recall(args.corpus, progress.advance)
        scale = measure_scale(args.messages, progress.advance) if args.messages else None
    if args.json:
        print_json({"machine": machine(), **figures, "scale": scale})
        return 0
    if figures:
        _print_text(figures)
    if scale:
        print(table([(name, str(value)) for name, value in scale.items()]))
    return 0


def _print_text(found: dict[str, Any]) -> None:
    parts = {
        name: one for name, one in found.items() if isinstance(one, dict) and "foredeck" in one
    }
    for name, part in parts.items():
        print(f"{name}: {part['questions']} questions")
        searches = [(one, figures) for one, figures in part.items() if isinstance(figures, dict)]
        heads = ("", *searches[0][1])
        rows = [(one, *(f"{value:.1f}" for value in figures.values())) for one, figures in searches]
        print(table([heads, *rows]))
        ahead, low, high = part["ahead_of_fts5_hit@10"]
        print(f"ahead of FTS5 at hit@10: {ahead:+.1f} ({low:+.1f} to {high:+.1f})\n")
    exact, latency = found["exact"], found["latency_cpu_ms"]
    print(
        f"{exact['queries']} queries of three words that one message has: first "
        f"{exact['hit@1']:.1f}%, in the first three {exact['hit@3']:.1f}%"
    )
    print(f"a question takes {latency['p50']} ms of the processor, {latency['p95']} at p95")


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "corpus",
        metavar="CORPUS",
        nargs="?",
        type=Path,
        help="a folder with corpus.json (conversations, questions and the messages that answer "
        "them) and, in histories/, the conversations as session files",
    )
    parser.add_argument(
        "--messages", metavar="N", type=positive, help="index this many made-up messages of 1.2 KB"
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Ask a corpus of long conversations questions whose answering messages are known, each\n"
        "in the project of its conversation: how often such a message comes first, among the\n"
        "first five and ten, and the mean reciprocal rank; the same of sessions, in the order of\n"
        "their best message. Beside it FTS5 with a stemmer, with an index for each\n"
        "conversation; by categories and by halves (odd and even conversations, to choose\n"
        "constants on one and report them on the other). Then queries of three words that\n"
        "exactly one message has. With --messages rate, size and latency of an index of so many."
    ),
    example="foredeck bench recall ../shared/locomo --json",
    configure=_configure,
    run=_run,
)
