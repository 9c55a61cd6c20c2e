"""Who wrote each line of a file: a session's tool call, or a person or program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import chain
from typing import NamedTuple

from foredeck.model.calls import CallRecord
from foredeck.model.documents import Document, FileDocument, ToolcallDocument, session_object_id
from foredeck.model.identity import decode_text, hash_text
from foredeck.sources.snapshots import is_captured, is_written_by_agent, tool_call_of, version_ms
from foredeck.store.protocol import Head
from foredeck.store.store import Store
from foredeck.timeline.branches import records_of

AGENT = "agent"
PERSON = "person"
NEAR = 200
"""Lines searched around a change for the next equal ones."""
ANCHOR = 3
"""Equal lines in a row that identify a place."""
EXACT_LINES = 2000
"""In longer stretches frequent lines are not compared."""


@dataclass(frozen=True, slots=True)
class Author:
    """A version's author; `by` is `agent`, or `person` for everything else."""

    by: str
    time_ms: int
    """Time of the call, or when the version was found."""
    session: str | None = None
    call: int | None = None
    """Number of the model call in its session."""
    tool: str | None = None
    tool_call: str | None = None
    """Id of the tool call's object."""
    model: str | None = None
    first: bool = False
    """Whether this is the oldest version, whose lines may be older."""
    agent: str | None = None
    """By what name sessions of its agent are stored: `pi`, `claude-code`."""

    @property
    def name(self) -> str | None:
        if self.by != AGENT:
            return "there before" if self.first else "a person"
        return "an agent" if self.session is None else None


class BlamedLine(NamedTuple):
    """A line, its number from 1, and its author."""

    number: int
    text: str
    author: Author


def blame(store: Store, versions: Sequence[Head], newest: str | None = None) -> list[BlamedLine]:
    """The lines of a file by its versions, across renames.

    `newest`: unstored text on disk.
    """
    with_text = [head for head in versions if head.fields.get("text_hash")]
    authors = _Authors(store)
    # One text after the other: all versions of a long file together may be large.
    texts: Iterable[str] = (text_of_version(store, head) for head in with_text)
    hashes = [str(head.view(Document).text_hash) for head in with_text]
    if newest is not None:
        texts = chain(texts, [newest])
        hashes.append(hash_text(newest))
    last = (
        newest if newest is not None else text_of_version(store, with_text[-1]) if with_text else ""
    )
    origins = line_origins(texts, returns_of(hashes))
    author_by_origin = {
        number: authors.of(with_text[number], first=number == 0)
        if number < len(with_text)
        else Author(PERSON, 0)
        for number in set(origins)
    }
    lines = zip(lines_of(last), origins, strict=True)
    return [
        BlamedLine(n, line, author_by_origin[origin]) for n, (line, origin) in enumerate(lines, 1)
    ]


class _Authors:
    """Finds the tool calls behind versions."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._calls: dict[str, ModelCalls] = {}
        self._agents: dict[str, str] = {}

    def of(self, head: Head, *, first: bool) -> Author:
        """Who made a version."""
        tool_call, is_agents = self._tool_call(head, first=first), is_written_by_agent(head)
        if tool_call is None:
            return Author(AGENT if is_agents else PERSON, version_ms(head), first=first)
        session = tool_call.view(ToolcallDocument).chat_ref.removeprefix("chat:")
        if session not in self._calls:
            self._calls[session] = ModelCalls(self._store, session)
            wrapper = self._store.head(session_object_id(session))
            fields = {} if wrapper is None else wrapper.fields
            self._agents[session] = str(fields.get("harness") or "pi")
        record = self._calls[session].behind(tool_call)
        return Author(
            AGENT,
            version_ms(head) if record is None else record.time_ms,
            session,
            None if record is None else record.ordinal,
            tool_call.fields.get("tool"),
            tool_call.id,
            None if record is None else record.model.name or None,
            first,
            self._agents[session],
        )

    def _tool_call(self, head: Head, *, first: bool) -> Head | None:
        # What no call has made was found on the disk.
        call_id = maker_of(head, first=first)
        return None if call_id is None else self._store.head(call_id)


class ModelCalls:
    """A session's model calls by the tool calls in their answers."""

    def __init__(self, store: Store, session: str) -> None:
        self._store = store
        records = records_of(store, session)
        self._by_id = {record.id: record for record in records}
        self._by_answer = dict(self._answers(records))

    def behind(self, tool_call: Head) -> CallRecord | None:
        """The model call that asked for a tool call, if seen."""
        turn = self._store.head(str(tool_call.fields.get("turn_ref")))
        if turn is None:
            return None
        if (answered := turn.fields.get("answers")) in self._by_id:
            return self._by_id[answered]
        return self._by_answer.get(str(turn.fields.get("assistant")))

    def _answers(self, records: Iterable[CallRecord]) -> Mapping[str, CallRecord]:
        by_answer: dict[str, CallRecord] = {}
        for record in records:
            parent = self._by_id.get(record.parent or "")
            address = next(record.addresses, None)
            if parent is not None and address is not None and record.shared == parent.length:
                by_answer.setdefault(address, parent)
        return by_answer


def text_of_version(store: Store, version: Head) -> str:
    """A version's text, or ""."""
    # A long text is a blob of its own; the whole document would be checked against all its hashes.
    digest = version.fields.get("text_hash")
    blob = store.blobs([digest]).get(digest) if digest else None
    if blob is not None:
        return decode_text(blob)
    document = store.get(version.id, FileDocument, version.token)
    return "" if document is None or document.content is None else document.content


def maker_of(version: Head, *, first: bool) -> str | None:
    """The tool call that a version names as its maker."""
    is_made = is_written_by_agent(version) or is_captured(version.fields) or not first
    return tool_call_of(version) if is_made else None


def line_origins(texts: Iterable[str], returns: Mapping[int, int] | None = None) -> list[int]:
    """The number of the text that brought each line of the last one.

    `returns`: texts equal to an earlier one.
    """
    returns = returns or {}
    origins_by_text: dict[int, list[int]] = {earlier: [] for earlier in returns.values()}
    before: str | None = None
    origins: list[int] = []
    for number, text in enumerate(texts):
        if number in returns:
            origins = list(origins_by_text[returns[number]])
        elif before is None:
            origins = [number] * len(lines_of(text))
        elif text != before:
            _carry(before, text, origins, number)
        if number in origins_by_text:
            origins_by_text[number] = list(origins)
        before = text
    return origins


def returns_of(hashes: Sequence[str]) -> dict[int, int]:
    """Texts equal to an earlier one: restored, not rewritten."""
    first: dict[str, int] = {}
    for number, digest in enumerate(hashes):
        first.setdefault(digest, number)
    return {
        number: first[digest]
        for number, digest in enumerate(hashes)
        if first[digest] != number and hashes[number - 1] != digest
    }


def lines_of(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _carry(old: str, new: str, origins: list[int], number: int) -> None:
    # Most of a long text is as it was: only what lies between is taken apart into lines.
    start = old.rfind("\n", 0, _equal(old, 0, new, 0)) + 1
    end = _equal_lines_at_end(old, new, start)
    olds, news = lines_of(old[start : len(old) - end]), lines_of(new[start : len(new) - end])
    first = old.count("\n", 0, start)
    new_origins = [number] * len(news)
    for at, into, size in equal_runs(olds, news):
        new_origins[into : into + size] = origins[first + at : first + at + size]
    origins[first : first + len(olds)] = new_origins


def _equal_lines_at_end(old: str, new: str, start: int) -> int:
    """Characters of equal lines at both ends, without those before `start`."""
    most = min(len(old), len(new)) - start
    size, stride = 0, 1
    while stride:
        stride = min(stride, most - size)
        at, into = len(old) - size, len(new) - size
        if old[at - stride : at] == new[into - stride : into]:
            size, stride = size + stride, stride * 2
        else:
            stride //= 2
    if _begins_line(old, len(old) - size) and _begins_line(new, len(new) - size):
        return size
    return len(old) - 1 - old.find("\n", len(old) - size) if "\n" in old[len(old) - size :] else 0


def _begins_line(text: str, at: int) -> bool:
    return at == 0 or text[at - 1] == "\n"


def equal_runs(olds: list[str], news: list[str]) -> Iterator[tuple[int, int, int]]:
    """Runs of equal lines: starts in both texts, and length."""
    # Most versions differ in a few places, and a full comparison takes time that grows with the
    # square of the length. So equal lines are walked over in strides, and where they end, the next
    # place is searched nearby; only what lies between is compared line by line.
    at = into = 0
    while at < len(olds) and into < len(news):
        size = _equal(olds, at, news, into)
        yield at, into, size
        at, into = at + size, into + size
        next_at, next_into = _resumed(olds, at, news, into)
        yield from _compared(olds, at, next_at, news, into, next_into)
        at, into = next_at, next_into


def _equal(olds: Sequence[str], at: int, news: Sequence[str], into: int) -> int:
    # Slices compare at the speed of C: double the stride while they are equal, then halve it.
    most = min(len(olds) - at, len(news) - into)
    size, stride = 0, 1
    while stride:
        stride = min(stride, most - size)
        start, end = at + size, at + size + stride
        if olds[start:end] == news[into + size : into + size + stride]:
            size, stride = size + stride, stride * 2
        else:
            stride //= 2
    return size


def _resumed(olds: list[str], at: int, news: list[str], into: int) -> tuple[int, int]:
    places: dict[str, list[int]] = {}
    for position in range(into, min(into + NEAR, len(news))):
        places.setdefault(news[position], []).append(position)
    equal_places = [
        (start + position, start, position)
        for start in range(at, min(at + NEAR, len(olds)))
        for position in places.get(olds[start], ())
        if olds[start : start + ANCHOR] == news[position : position + ANCHOR]
    ]
    return min(equal_places)[1:] if equal_places else (len(olds), len(news))


def _compared(
    olds: list[str], at: int, end: int, news: list[str], into: int, new_end: int
) -> Iterator[tuple[int, int, int]]:
    """As `equal_runs`, for two stretches."""
    if at == end or into == new_end:
        return
    is_long = end - at + new_end - into > EXACT_LINES
    matcher = SequenceMatcher(None, olds[at:end], news[into:new_end], autojunk=is_long)
    for block in matcher.get_matching_blocks():
        yield at + block.a, into + block.b, block.size
