"""Search hits as text, for models and people."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from foredeck.commands import plain_count
from foredeck.model.figures import counted, cut
from foredeck.model.identity import ENTRY, TASK, ShortNames
from foredeck.model.quoting import block, one_line, quoted
from foredeck.model.quoting import name as named
from foredeck.model.records import MemberDocument
from foredeck.names import short_ids
from foredeck.search import SEARCHED_TYPES
from foredeck.search.index import IndexedText
from foredeck.search.searching import SearchHit, SearchResult
from foredeck.search.texts import VERSIONED
from foredeck.store.store import Store

LINE_CHARS = 120

NOT_UP_TO_DATE = (
    "The index is still being made: what is not found may be there. Ask again in a while."
)
NARROWER = (
    "activate brings one in full. More: limit. Narrower: "
    f"type ({', '.join(SEARCHED_TYPES)}), tool, path, task, since."
)
_INDENT = " " * 6
_LINES_OF_A_HIT = 12
_SHORT_ID = 12
"""Characters of a file's id, a hash, that name it."""
_BEFORE_MARK = 30
"""Characters before a row's first match."""
_PLURALS = {"file": "Files", "task": "Tasks", "memory": "Memory"}
"""What belongs to no session."""


# For the model


def describe(
    found: SearchResult,
    names: Sequence[str],
    in_view: int,
    here: str,
    task_name: Callable[[str], str] = str,
) -> str:
    """Hits under their sessions' titles, with names to activate.

    `in_view`: hits omitted as visible; `here`: the session's id.
    """
    ranks = {id(hit): rank for rank, hit in enumerate(found.hits, 1)}
    name_of, best = dict(zip(map(id, found.hits), names, strict=True)), found.hits[0]
    lines = []
    for session, hits in found.groups():
        lines.append(
            "In this session:" if session == here else heading_of_hits(found, session, hits)
        )
        for hit in hits:
            task = hit.entry.task if hit.entry.type != "task" else None
            notes = [f"rank {ranks[id(hit)]}"] if len(found.hits) > 1 else []
            notes += [f"task {task_name(task)}"] if task else []
            lines += _for_model(hit, name_of[id(hit)], notes, in_full=hit is best)
    return "\n".join([*lines, _ending(found, in_view)])


def nothing_found(scope: str, in_view: int) -> str:
    """Suggests what to try without hits."""
    if in_view:
        return f"Nothing beyond what you see already ({plain_count(in_view, 'hit')} in view)."
    where = {"project": "this project", "session": "this session", "all": "any session"}
    wider = "" if scope == "all" else ', or scope "all"'
    return f"Nothing found in {where[scope]}. Try fewer or other words{wider}."


def _for_model(hit: SearchHit, name: str, said: Iterable[str], *, in_full: bool) -> Iterator[str]:
    entry, near = hit.entry, [one for one in hit.around if one[1]]
    turn = [] if entry.turn is None else [f"turn {entry.turn}"]
    head = (
        ", ".join([name, *turn, _time(entry.time_ms), *_about(hit), *said])
        + f" [{one_line(_why(hit.rank.words))}]"
    )
    text = hit.passage.marked()
    before = [_neighbour("before", *one) for one in near if one[0].id < entry.id]
    after = [_neighbour("after", *one) for one in near if one[0].id > entry.id]
    if text and not in_full and not near:
        yield f"{head}: {cut(one_line(text), LINE_CHARS)}"
        return
    yield from [head, *before]
    yield from [block(text)] if text else []
    yield from after


def _neighbour(where: str, entry: IndexedText, text: str) -> str:
    return f"  {where}, {kind_of_hit(entry)}: {cut(one_line(text), LINE_CHARS)}"


def _ending(found: SearchResult, in_view: int) -> str:
    visible = f" ({in_view} more in view already)" if in_view else ""
    count, more = len(found.hits), found.more - in_view
    if more <= 0:
        return f"{plain_count(count, 'hit')}{visible}{weaker(found)}; activate brings one in full."
    newest = " among the newest texts" if found.is_part else ""
    return f"{count} of {count + more:,} hits{newest}{visible}{weaker(found)}; {NARROWER}"


# For people


@dataclass(frozen=True, slots=True)
class Style:
    """A terminal's heading, context, and match."""

    bold: Callable[[str], str] = str
    dim: Callable[[str], str] = str
    mark: Callable[[str], str] = "«{}»".format
    mark_width: int = 2
    """Columns that a mark takes."""


def describe_to_people(
    found: SearchResult,
    name_of: Callable[[SearchHit], str],
    when: Callable[[int], str],
    style: Style,
    explain: Callable[[SearchHit], Collection[str]] = lambda _: (),
    width: int | None = None,
) -> str:
    """The count, then each hit with its name for `foredeck cat`, kind, matching words and passage,
    in `width` columns."""
    most = width or sys.maxsize
    lines = []
    for session, hits in found.groups():
        lines += ["", style.bold(cut(heading_of_hits(found, session, hits), most))]
        for hit in hits:
            words = f"[{one_line(', '.join(hit.rank.words))}]"
            kind, *more = _about(hit)
            # `@5::args.command` is what is typed: what that is, stands behind it.
            field = hit.place.rpartition(".")[2] if hit.place.startswith("::") else ""
            kind = f"{kind} ({field})" if field else kind
            about = [when(hit.entry.time_ms), kind, *more, words]
            called = cut(name_of(hit), most - 2)
            note = cut("  ".join(["", *about]), max(0, most - 2 - len(called)))
            lines.append(f"  {style.bold(called)}{note}")
            lines += [style.dim(f"{_INDENT}{line}") for line in explain(hit)]
            lines += _around_the_first_mark(hit, list(_passage_lines(hit, style, most)))
            for near, neighbour_text in hit.around:
                where = "before" if near.id < hit.entry.id else "after"
                text = cut(f"      {where}, {kind_of_hit(near)}: {one_line(neighbour_text)}", most)
                lines.append(style.dim(text))
    of = f"{len(found.hits)} of " if found.more > 0 else ""
    first = f"{of}{counted_hits(found)}. `foredeck cat NAME` prints one in full."
    return "\n".join([first, *lines])


def counted_hits(found: SearchResult) -> str:
    newest = " among the newest texts: the words are too common" if found.is_part else ""
    return f"{counted(found.total - found.weak, 'hit')}{weaker(found)}{newest}"


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A hit for a screen; tasks and memory entries open differently."""

    name: str
    type: str
    when: str
    kind: str
    session: str
    says: str


def found_rows(
    found: SearchResult, name_of: Callable[[SearchHit], str], when: Callable[[int], str]
) -> Iterator[FoundRow]:
    """Hits as rows, in order."""
    for session, hits in found.groups():
        title = one_line(found.titles.get(session or "") or "")
        for hit in hits:
            start = max(0, hit.passage.marks[0][0] - _BEFORE_MARK) if hit.passage.marks else 0
            says = hit.entry.path or " ".join(hit.passage.text[start:].split())
            kind = kind_of_hit(hit.entry)
            time = when(hit.entry.time_ms)[:10]
            is_named = hit.entry.type in ("task", "memory")
            name = name_of(hit) if is_named else f"{hit.object}{hit.place}"
            yield FoundRow(name, hit.entry.type, time, kind, title, one_line(says))


def _around_the_first_mark(hit: SearchHit, lines: list[str]) -> list[str]:
    before = hit.passage.text[: hit.passage.marks[0][0]] if hit.passage.marks else ""
    first = min(max(0, before.count("\n") - 2), max(0, len(lines) - _LINES_OF_A_HIT))
    return lines[first : first + _LINES_OF_A_HIT]


def _passage_lines(hit: SearchHit, style: Style, most: int) -> Iterator[str]:
    if not hit.passage.text:
        return
    line, width = [_INDENT], most - len(_INDENT)
    for text, is_marked in hit.passage.pieces():
        for number, part in enumerate(text.expandtabs(4).split("\n")):
            if number:
                yield "".join(line)
                line, width = [_INDENT], most - len(_INDENT)
            if part and width > 0:
                piece = cut(part, width)
                line.append(style.mark(piece) if is_marked else piece)
                width -= len(part) + style.mark_width * is_marked
    yield "".join(line)


def nothing_for_people(scope: str) -> str:
    where = "this session" if scope == "session" else "this project"
    return f"Nothing found in {where}. Fewer or other words may; `foredeck search` asks everywhere."


# For both


def weaker(found: SearchResult) -> str:
    """Number of weaker texts left out."""
    return f" ({counted(found.weak, 'weaker one')} left out)" if found.weak else ""


def kind_of_hit(entry: IndexedText) -> str:
    """The speaker, tool, or state of a task."""
    what = entry.role if entry.type in ("message", "toolcall") else ""
    if entry.type in ("task", "memory"):
        what = f"{entry.type} {entry.role}"
    return one_line(what or entry.type) + (" failed" if entry.status == "fail" else "")


def _about(hit: SearchHit) -> Iterator[str]:
    entry = hit.entry
    yield kind_of_hit(entry)
    if entry.path:
        yield named(entry.path)
    if entry.type in VERSIONED and not entry.newest:
        yield "older version"
    if hit.also:
        yield f"and {hit.also} more of this {'task' if entry.type == 'task' else 'file'}"


def heading_of_hits(found: SearchResult, session: str | None, hits: Sequence[SearchHit]) -> str:
    """A session's first question, or the kinds of other hits."""
    if session is None:
        kinds = dict.fromkeys(_PLURALS.get(hit.entry.type, hit.entry.type) for hit in hits)
        first, *others = kinds
        return ", ".join([first, *(kind.lower() for kind in others)]) + ":"
    title = found.titles.get(session)
    return f"In {quoted(title)}:" if title else f"In session {session}:"


def _why(words: Sequence[str]) -> str:
    whole = (word for word in words if not any(word in other != word for other in words))
    return ", ".join(whole)


def _time(time_ms: int) -> str:
    # In UTC: the same hit reads the same on every machine.
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")


class HitNames:
    """`SESSION:@12 message 93` with a short session id; `t-k3f9`; `m-k3f9`."""

    def __init__(self, store: Store, sessions: Iterable[str]) -> None:
        self._store = store
        self._sessions = sessions

    def of(self, hit: SearchHit) -> str:
        """The name, or the object's id if no session has it."""
        if hit.entry.type == "task":
            return self._tasks.name(hit.object)
        if hit.entry.type == "memory":
            return self._memories.name(hit.object)
        return self._object(hit) + hit.place

    @cached_property
    def _tasks(self) -> ShortNames:
        return ShortNames(TASK, (head.id for head in self._store.query("task")))

    @cached_property
    def _memories(self) -> ShortNames:
        return ShortNames(ENTRY, (head.id for head in self._store.query("memory")))

    def _object(self, hit: SearchHit) -> str:
        if hit.session is None:
            return hit.object[:_SHORT_ID] if hit.entry.type == "file" else hit.object
        where = {"object": hit.object, "session": hit.session}
        members = self._store.query("member", where, limit=1)
        # A session without a folder is not among those listed.
        session = (
            self._short.get(hit.session) or short_ids({*self._sessions, hit.session})[hit.session]
        )
        if members:
            return f"{session}:@{members[0].view(MemberDocument).ordinal}"
        kind, _, owner = hit.object.partition(":")
        return f"{kind}:{session}" if owner == hit.session else hit.object

    @cached_property
    def _short(self) -> dict[str, str]:
        return short_ids(self._sessions)
