"""One search: from query to hits with passages and reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from os.path import normpath
from pathlib import PurePath

from foredeck.errors import ForedeckError, Missing
from foredeck.model.documents import session_object_id
from foredeck.model.names import RUN, SHORTEST_PART, WORD, composed, joined
from foredeck.model.records import ARCHIVED
from foredeck.search.index import Extent, Filters, IndexedText, SearchIndex
from foredeck.search.passages import Passage, passage
from foredeck.search.query import Term, is_name, parse_query, periods_in
from foredeck.search.ranking import (
    Candidate,
    Ranked,
    by_session,
    highest_scores,
    is_weak,
    own_scores,
    rank,
)
from foredeck.search.secrets import mask_secrets
from foredeck.search.texts import VERSIONED, Fetched, SearchedText, texts_of, title_of
from foredeck.store.protocol import Head, Token
from foredeck.store.store import Store

BEST_PASSAGE, PASSAGE = 1200, 200
"""Characters of the best hit's passage, and of others'."""

RANKED, MORE_RANKED, MOST_RANKED = 200, 600, 2_000
"""Entries ranked; more if many are alike or left out."""

LONG, AROUND = 20_000, 4_000
"""In a longer text a hit names the place of the match."""

PER_SESSION = 3
"""Hits per session, when sessions come first."""

HASH_CHARS = 8
"""Of a hash that names a version."""

OF_A_FILE = frozenset({"read", "write"})
"""Tools whose calls only show a file."""

LeaveOut = Callable[[IndexedText], bool]


@dataclass(frozen=True, slots=True)
class SearchHit:
    """An entry that was found.

    `object`: opened for it; `place`: follows its name, such as ` message 93`; `also`: versions,
    reads and writes of the same file; `around`: neighbours.
    """

    entry: IndexedText
    object: str
    session: str | None
    rank: Ranked
    passage: Passage
    place: str = ""
    also: int = 0
    around: tuple[tuple[IndexedText, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A search's outcome.

    `left_out`: too common words; `is_part`: only the newest entries were searched; `weak`: entries
    too weak to be hits.
    """

    total: int
    hits: list[SearchHit] = field(default_factory=list)
    titles: Mapping[str, str] = field(default_factory=dict)
    searched: tuple[Term, ...] = ()
    left_out: tuple[Term, ...] = ()
    is_part: bool = False
    weak: int = 0

    @property
    def more(self) -> int:
        """Further possible hits."""
        return self.total - self.weak - len(self.hits) - sum(hit.also for hit in self.hits)

    def groups(self) -> list[tuple[str | None, list[SearchHit]]]:
        """Hits by session, best session first; None: no session."""
        by_session: dict[str | None, list[SearchHit]] = {}
        for hit in self.hits:
            by_session.setdefault(hit.entry.session, []).append(hit)
        return list(by_session.items())


@dataclass(frozen=True, slots=True)
class RankedEntries:
    """The best entries without weak ones, both counts, and the plan."""

    plan: SearchPlan
    total: int
    best: list[Ranked]
    weak: int


def search(
    store: Store,
    index: SearchIndex,
    query: str,
    filters: Filters | None = None,
    *,
    limit: int = 10,
    message_range: int = 0,
    sessions_first: bool = False,
    leave_out: LeaveOut | None = None,
) -> SearchResult:
    """The best hits, each object once; deterministic.

    `message_range`: neighbours per side. `leave_out` judges hits, best first.
    """
    filters = filters or Filters()
    # The second time as many as can be ranked: of the first, too many were turned down, or show
    # what others show.
    for enough in (limit if leave_out is None and not sessions_first else RANKED, MOST_RANKED):
        result = ranked_entries(index, query, filters, enough)
        ranked = result.best
        if sessions_first:
            ranked = [one for hits in by_session(ranked).values() for one in hits[:PER_SESSION]]
        # Beyond the limit: a fork repeats what was said before it.
        several = _first_of_objects(store, index, ranked, 2 * limit, leave_out)
        texts, chosen = _each_once(store, several, limit)
        if len(chosen) >= limit or result.weak or len(result.best) < enough:
            break
    hits = []
    for number, (one, entry, also) in enumerate(chosen):
        width = PASSAGE if number else BEST_PASSAGE
        matching = [term for term in result.plan.terms if term.text in one.words]
        excerpt, place = texts.passage(entry, matching or result.plan.terms, width)
        session = entry.session or _met_in(index, entry.document, filters)
        hits.append(SearchHit(entry, texts.object_of(entry), session, one, excerpt, place, also))
    if message_range:
        hits = [_with_neighbours(store, index, hit, message_range) for hit in hits]
    plan = result.plan
    titles = {id: title_of(store, id) for hit in hits if (id := hit.entry.session) is not None}
    terms = plan.terms, plan.left_out
    return SearchResult(result.total, hits, titles, *terms, plan.is_part, result.weak)


def ranked_entries(index: SearchIndex, query: str, filters: Filters, enough: int) -> RankedEntries:
    """Entries for a query, best first; the first `enough` are exact."""
    # A name alone is searched for whole, and by its parts only where not `enough` texts have it:
    # who knows the name wants the text that has it, and far more have its parts. In a query of
    # several words parts say what the whole is about.
    terms = parse_query(query)
    periods = list(periods_in(query))
    best: dict[int, Ranked] = {}
    is_cut = False
    for tier in (terms[:1], terms) if is_name(query) and len(terms) > 1 else (terms,):
        plan = plan_query(index, tier, filters)
        words = [index.find(term, plan.extent, filters) for term in plan.terms]
        scores = own_scores(words)
        bounds = highest_scores(words, scores, MOST_RANKED)
        known: dict[int, Candidate] = {}

        def describe(ids: Set[int], known: dict[int, Candidate] = known) -> dict[int, Candidate]:
            known |= index.candidates(ids - known.keys(), filters)
            return known

        for most in (max(RANKED, enough), max(MORE_RANKED, enough), MOST_RANKED):
            ranking = rank(words, scores, periods, describe, bounds, most)
            strong = [one for one in ranking.best if not is_weak(one, ranking.best[0])]
            # Whether no other text can come before so many of the best.
            last = strong[enough - 1 : enough]
            if not ranking.beyond or (last and ranking.beyond <= last[0].score):
                break
        is_cut |= len(strong) < len(ranking.best)
        for one in strong:
            best.setdefault(one.id, one)
        if len(best) >= enough:
            break
    total = len(scores.keys() | best.keys())
    # What was not ranked would come after what is weak.
    return RankedEntries(plan, total, list(best.values()), total - len(best) if is_cut else 0)


def _met_in(index: SearchIndex, document: str, filters: Filters) -> str | None:
    session_ids = reversed(index.sessions_that_met(document))
    return next((session for session in session_ids if session not in filters.without), None)


def _words(terms: Iterable[Term], text: str) -> Iterator[str]:
    for term in terms:
        are_names = len(term.phrases) > 1 and max(map(len, term.phrases)) > 1
        spaced_text = f" {' '.join(WORD.findall(composed(text).lower()))} " if are_names else ""
        for phrase in term.phrases:
            if not are_names or f" {' '.join(phrase)} " in spaced_text:
                yield from RUN.findall(joined(phrase))


def _first_of_objects(
    store: Store,
    index: SearchIndex,
    ranked: Sequence[Ranked],
    limit: int,
    leave_out: LeaveOut | None,
) -> list[tuple[Ranked, IndexedText, int]]:
    """The best hits, with only the best of a file's versions, reads and writes."""
    chosen: dict[str, tuple[Ranked, IndexedText]] = {}
    also: dict[str, int] = {}
    folders = index.folders()
    # Page by page: the entries of the first page are mostly enough, and each costs a look-up.
    for first in range(0, len(ranked), 2 * limit):
        page = ranked[first : first + 2 * limit]
        entries = index.entries(one.id for one in page)
        calls = store.heads(entry.document for entry in entries.values() if _shows_a_file(entry))
        for one in page:
            entry = entries[one.id]
            if len(chosen) >= limit or (leave_out is not None and leave_out(entry)):
                continue
            name = _subject(entry, calls.get(entry.document), folders)
            also[name] = also.get(name, -1) + 1
            chosen.setdefault(name, (one, entry))
        if len(chosen) >= limit:
            break
    return [(*pair, also[name]) for name, pair in chosen.items()]


def _each_once(
    store: Store, chosen: Sequence[tuple[Ranked, IndexedText, int]], limit: int
) -> tuple[_Texts, list[tuple[Ranked, IndexedText, int]]]:
    """The first hits, with only the best of messages that forks repeat."""
    texts = _Texts(store, [entry for _, entry, _ in chosen])
    roots: dict[str, str] = {}
    by_key: dict[object, tuple[Ranked, IndexedText, int]] = {}
    for one, entry, also in chosen:
        key = texts.repeated(entry, roots) or entry.id
        if key in by_key and by_key[key][1].session != entry.session:
            best, first, more = by_key[key]
            by_key[key] = (best, first, more + also + 1)
        else:
            by_key[key if key not in by_key else entry.id] = (one, entry, also)
    return texts, [*by_key.values()][:limit]


def _shows_a_file(entry: IndexedText) -> bool:
    is_call = entry.type == "toolcall" and entry.role.lower() in OF_A_FILE
    return is_call and entry.path is not None and entry.status != "fail"


def _subject(entry: IndexedText, call: Head | None, folders: Mapping[str, str]) -> str:
    if entry.type in VERSIONED:
        is_of_history = entry.type == "file" and entry.session is not None
        return entry.path if is_of_history and entry.path else entry.document
    if not _shows_a_file(entry):
        return str(entry.id)
    files = [] if call is None else call.fields.get("file_refs") or []
    if len(files) == 1:
        return str(files[0])
    return normpath(PurePath(folders.get(entry.session or "", "")) / (entry.path or ""))


def _with_neighbours(store: Store, index: SearchIndex, hit: SearchHit, each_way: int) -> SearchHit:
    around = index.neighbours(hit.entry, each_way)
    texts = _Texts(store, around)
    beginnings = ((entry, texts.passage(entry, (), PASSAGE)[0].text) for entry in around)
    return replace(hit, around=tuple(beginnings))


class _Texts:
    """Texts of entries, from the store."""

    def __init__(self, store: Store, entries: Iterable[IndexedText]) -> None:
        self._store = store
        self._found: dict[tuple[str, str, str], SearchedText] = {}
        heads: dict[tuple[str, str], Head] = {}
        for entry in entries:
            with suppress(Missing):  # erased since it was indexed
                head = store.head(entry.document, Token(entry.token))
                if head is not None:
                    heads[entry.document, entry.token] = head
        fetched = Fetched(store, heads.values())
        for (_, token), head in heads.items():
            try:
                texts = texts_of(head, fetched)
            except (ForedeckError, LookupError, TypeError, ValueError):  # not to be had any more
                continue
            self._found.update({(text.document, token, text.part): text for text in texts})

    def passage(self, entry: IndexedText, terms: Sequence[Term], width: int) -> tuple[Passage, str]:
        text = self._of(entry)
        if text is None:
            return Passage(), ""
        at = _version_or_message(entry, text)
        if text.is_archived:
            return Passage(ARCHIVED), at
        pieces = [(field, mask_secrets(piece)) for field, piece in text.pieces]
        candidates = [
            (passage(piece, _words(terms, piece), width), field, piece) for field, piece in pieces
        ]
        best, field, piece = max(candidates, key=lambda one: one[0].words)  # the first of equals
        place = at + (f"::{field}" if field else "")
        if len(piece) > LONG and entry.type != "message":
            first = max(1, _begin(best, piece) - AROUND // 4)
            place += f" chars {first}-{min(len(piece), first + AROUND)}"
        return best, place

    def object_of(self, entry: IndexedText) -> str:
        text = self._of(entry)
        return entry.document if text is None else text.object

    def repeated(self, entry: IndexedText, roots: dict[str, str]) -> object:
        """Equal for a message or call in all related sessions."""
        text = self._of(entry)
        if text is None or entry.type not in ("message", "toolcall") or entry.session is None:
            return None
        if entry.session not in roots:
            roots[entry.session] = _root_of(self._store, entry.session)
        root = roots[entry.session]
        time_ms = entry.time_ms if root == _BY_TIME else 0
        return root, entry.type, entry.role, text.said, text.output, time_ms

    def _of(self, entry: IndexedText) -> SearchedText | None:
        return self._found.get((entry.document, entry.token, entry.part))


_BY_TIME = "claude-code"
"""These sessions name no origin, but copied lines keep the time."""


def _root_of(store: Store, session: str) -> str:
    lineage = [session]
    while (head := store.head(session_object_id(lineage[-1]))) is not None:
        if head.fields.get("harness") == _BY_TIME:
            return _BY_TIME
        parent = head.fields.get("parent_session")
        if not parent or parent in lineage:
            break
        lineage.append(parent)
    return lineage[-1]


def _begin(found: Passage, text: str) -> int:
    # A passage leaves out blanks, so that its own places are not those of the text.
    at = found.marks[0][0] if found.marks else 0
    line = found.text[found.text.rfind("\n", 0, at) + 1 :].partition("\n")[0].strip("…")
    place = text.find(line)
    return found.start if place < 0 else place


def _version_or_message(entry: IndexedText, text: SearchedText) -> str:
    if entry.type == "message" and entry.message is not None:
        return f" message {entry.message.rpartition(':')[2]}"
    if entry.type == "file" and not entry.newest:
        return f" at {text.digest[:HASH_CHARS]}"
    return ""


# Which of a query's words are searched for, so that the time of a search is bounded.
#
# To score a text costs FTS5 several times as much as to pass over it, and a word that a large
# part of all texts hold says little. So in a large index the rarest words are searched for, as many
# as there is time for. Where even the rarest is too common, only the newest texts are searched,
# and the result says so.

SMALL = 20_000
"""Up to this size all words are searched."""

SCORED = 8_000
"""By estimate, once per word."""

_PASSED = 0.3

_TOGETHER = 3
"""The rarest words, searched in the newest entries."""

_PIECES = 12
"""Identifiers searched in place of a piece."""


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """How to search a query: terms, and the entries."""

    terms: tuple[Term, ...]
    left_out: tuple[Term, ...]
    extent: Extent
    is_part: bool = False


def plan_query(index: SearchIndex, typed: Iterable[Term], filters: Filters) -> SearchPlan:
    """How to look for terms."""
    extent = index.extent(filters)
    terms = _telling([_spelt(index, term) for term in typed], index)
    if index.size() <= SMALL:
        return SearchPlan(tuple(terms), (), extent)
    # Of the entries within the extent some are scored, and the others passed over.
    price = extent.density + _PASSED * (1 - extent.density)
    costs = {term: index.estimate(term, extent) * price for term in terms}
    chosen = set(_within(SCORED, costs))
    if any(costs[term] for term in chosen) or not any(costs.values()):
        return SearchPlan(
            tuple(term for term in terms if term in chosen),
            tuple(term for term in terms if term not in chosen),
            extent,
        )
    rarest = sorted(filter(costs.get, terms), key=lambda term: (costs[term], term.text))
    searched = rarest[:_TOGETHER]
    part = extent.newest(SCORED / sum(costs[term] for term in searched))
    return SearchPlan(tuple(searched), tuple(rarest[_TOGETHER:]), part, is_part=True)


def _telling(terms: list[Term], index: SearchIndex) -> list[Term]:
    telling = [term for term in terms if not term.is_unspaced or index.holds(term)]
    return telling or terms


def _within(budget: float, costs: dict[Term, float]) -> Iterable[Term]:
    for term in sorted(costs, key=lambda term: (costs[term], term.text)):
        budget -= costs[term]
        if budget < 0:
            return
        yield term


def _spelt(index: SearchIndex, term: Term) -> Term:
    """A term as it occurs: whole, as a beginning, or as a piece of a name."""
    if index.holds(term):
        return term
    prefix = Term(f"{term.text}*", term.phrases, is_prefix=True)
    if term.is_unspaced or len(term.text) < SHORTEST_PART:
        return term
    if not term.is_prefix and index.holds(prefix):
        return prefix
    if not term.text.isalnum():
        return term
    names = index.identifiers_with(term.text, _PIECES)
    spelt = (tuple(word.lower() for word in WORD.findall(name)) for name in names)
    phrases = tuple(dict.fromkeys(filter(None, spelt)))
    return Term(f"…{term.text}…", phrases) if phrases else term
