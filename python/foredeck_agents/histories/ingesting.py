"""Reads files in, one after the other; no file ends the run."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from foredeck.context.intake.object_writer import ObjectWriter
from foredeck.context.intake.take_in import take_system
from foredeck.context.messages.items import Item
from foredeck.context.messages.shape import Message, sections_as_text, to_item, tools_declared
from foredeck.context.state.session import Beginning, open_session
from foredeck.errors import Conflict
from foredeck.model.documents import (
    HistoryProgress,
    HistorySessionDocument,
    Provenance,
    chat_id,
    session_object_id,
    system_prompt_id,
)
from foredeck.model.messages import load_message
from foredeck.model.records import turn_id
from foredeck.sources.filesystem import FilesystemMap
from foredeck.sources.recorded import FileSource
from foredeck.sources.snapshots import FileSnapshot, Pending, ToolEvent
from foredeck.store.store import Store
from foredeck_agents.histories.files import HistoryFiles
from foredeck_agents.histories.lines import Lines, opened_lines
from foredeck_agents.histories.recordings import (
    FileState,
    Format,
    advance,
    file_state,
    format_of,
    is_stored,
    place_of,
    stored_state,
)
from foredeck_agents.histories.records import Exchange, HistorySession, exchanges

DIFFERENT = (
    "differs from what was read of its session before, from {}: `foredeck forget` that session, "
    "then `foredeck ingest --forgotten`, to have this file instead"
)
BUSY = "is being read in by another process"
UNKNOWN = "holds no session of Pi, Claude Code or Codex"
EMPTY = "is empty"

Advance = Callable[[int], None]
"""Called again and again with the number of messages that were just taken in."""


@dataclass(slots=True)
class Report:
    """What a run has found and stored, or would have."""

    files: Counter[str] = field(default_factory=Counter)
    """Files with new messages, by harness."""
    unchanged: int = 0
    """Files that held nothing new."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Why a file or session was not read, by path."""
    new: int = 0
    grown: int = 0
    """New sessions, and grown ones."""
    recorded: int = 0
    """Sessions that foredeck recorded itself."""
    forgotten: int = 0
    """Erased sessions, which are not read again."""
    messages: int = 0
    tool_calls: int = 0
    unreadable: Counter[str] = field(default_factory=Counter)
    """Lines, by reason."""
    damaged: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    """Numbers of the first damaged lines, by path and reason."""
    other: Counter[str] = field(default_factory=Counter)
    """Lines with nothing that was said, by kind."""

    def as_fields(self) -> dict[str, Any]:
        # Not by `asdict`, which makes of a Counter one that counts its pairs.
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: dict(v) if isinstance(v, Counter) else v for name, v in given.items()}


def ingest_files(
    store: Store | None,
    paths: Iterable[Path],
    *,
    dry: bool = False,
    forgotten: bool = False,
    advance: Advance = lambda _messages: None,
) -> Report:
    """Reads files into the store; `dry` stores nothing, `forgotten` includes erased sessions.

    Raises `StoreError`; the same call goes on later.
    """
    report = Report()
    for path in paths:
        try:
            state = file_state(path)
            format = format_of(path) if path.is_file() else None
            if format is None:
                report.skipped[str(path)] = UNKNOWN if state[0] else EMPTY
            else:
                _FileReading(store, path, state, report, dry, forgotten).run(format, advance)
        except OSError as error:
            report.skipped[str(path)] = f"cannot be read: {error.strerror or error}"
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            # No agent writes what makes this of a file; the others are to be read all the same.
            report.skipped[str(path)] = f"cannot be read: {type(error).__name__}: {error}"
        advance(0)
    return report


class _FileReading:
    """One file, with the sessions in it."""

    def __init__(
        self,
        store: Store | None,
        path: Path,
        state: FileState,
        report: Report,
        dry: bool,
        forgotten: bool,
    ) -> None:
        self._store = store
        # Resolved: a file that is named by a link is known again by its own name.
        self._path = Path(os.path.realpath(path))
        self._state = state
        self._report = report
        self._dry = dry
        self._forgotten = forgotten
        self._sessions: dict[str, _SessionReading | None] = {}
        """By id; None if left alone."""

    def run(self, format: Format, advance: Advance) -> None:
        """Reads the file, unless it holds nothing new."""
        report = self._report
        with opened_lines(self._path) as lines:
            for exchange in exchanges(format.read(lines)):
                if isinstance(exchange, HistorySession):
                    if self._is_unchanged(exchange):
                        report.unchanged += 1
                        return
                    self._sessions[exchange.id] = self._begin(exchange, lines)
                elif (reading := self._sessions[exchange.session]) is not None:
                    advance(reading.take(exchange))
            # The file's first session last: that it has been read to its end says so of the file.
            for reading in reversed(self._sessions.values()):
                if reading is not None:
                    reading.finish(self._state)
        report.unreadable += lines.tally.unreadable
        if lines.tally.places:
            report.damaged[str(self._path)] = lines.tally.places
        if not self._sessions:
            report.skipped[str(self._path)] = UNKNOWN
            return
        report.other += lines.tally.other
        readings = [reading for reading in self._sessions.values() if reading is not None]
        if any(reading.has_news for reading in readings):
            report.files[format.harness] += 1
        elif not any(reading.has_ended for reading in readings):
            report.unchanged += 1

    def _is_unchanged(self, start: HistorySession) -> bool:
        if self._sessions:  # it is not the first
            return False
        progress = stored_state(self._store, start.id).progress
        is_same = progress is not None and progress.file == str(self._path)
        return is_same and progress is not None and progress.complete == [*self._state]

    def _begin(self, start: HistorySession, lines: Lines) -> _SessionReading | None:
        state = stored_state(self._store, start.id)
        if state.kind == "recorded":
            self._report.recorded += 1
            return None
        if state.kind == "forgotten" and not self._forgotten:
            self._report.forgotten += 1
            return None
        progress = state.progress
        if progress is not None:
            # A file that was written anew may be longer by chance: the checksum tells.
            lines.watch(progress.line)
        store = None if self._dry else self._store
        return _SessionReading(store, start, self._path, progress, lines, self._report)


class _SessionReading:
    """One session of a file: which exchanges are new."""

    def __init__(
        self,
        store: Store | None,
        start: HistorySession,
        path: Path,
        progress: HistoryProgress | None,
        lines: Lines,
        report: Report,
    ) -> None:
        self.has_news = False
        """Whether any exchange was new."""
        self.has_ended = False
        """Whether nothing more is taken, for a reported reason."""
        self._store = store
        self._start = start
        self._path = path
        self._lines = lines
        self._report = report
        self._was_there = progress is not None
        self._difference = DIFFERENT.format(progress.file if progress else "")
        self._expected = None if progress is None else place_of(progress)
        self._is_elsewhere = progress is not None and progress.file != str(path)
        self._known = 0 if progress is None else progress.exchanges
        self._repeats: list[str | None] | None = None
        """Answers that another file has given, if this is no copy."""
        self._answers: list[str | None] = []
        self._newest: Message | None = None
        self._progress = progress or HistoryProgress(str(path))
        self._writer: SessionWriter | None = None
        self._number = 0
        self._user_turns = 0

    def take(self, exchange: Exchange) -> int:
        """Stores an exchange if new or grown; returns how many messages were new."""
        self._number += 1
        user_turns = self._user_turns
        self._user_turns += sum(record.role == "user" for record in exchange.before)
        if self._is_elsewhere:
            self._newest = exchange.message()
            self._answers.append(_address_of(self._newest))
        if self.has_ended or (
            self._repeats is None and is_stored(self._progress, exchange, self._number)
        ):
            return 0
        if not (self._is_continued() or self._is_repeated()):
            return self._end(self._difference)
        if self._repeats is not None and self._number <= self._known:
            known, given = self._repeats[self._number - 1], self._answers[-1]
            if known == given:
                self._progress.line, self._progress.check = exchange.last
                return 0
            if self._number < self._known or not self._begins(known, self._newest):
                return self._end(self._difference)
        before = self._progress.messages, self._progress.tool_calls
        try:
            self._store_exchange(exchange, user_turns)
        except Conflict:  # the session's document has changed since this reading began
            return self._end(BUSY)
        self._note_news(self._progress.messages - before[0], self._progress.tool_calls - before[1])
        return exchange.count

    def finish(self, state: FileState) -> None:
        """Stores the rest, and that the file was read to its end."""
        if not self.has_ended and not self._is_continued():
            if self._is_repeated():
                return
            self._end(self._difference)
        is_noted = self._was_there and self._progress.complete and not self.has_news
        if self.has_ended or is_noted or self._store is None or not self._number:
            return
        try:
            self._opened(self._store).finish(state)
        except Conflict:
            self._end(BUSY)

    def _store_exchange(self, exchange: Exchange, user_turns: int) -> None:
        if self._store is None:
            advance(self._progress, exchange, self._number)
        else:
            self._opened(self._store).take(exchange, self._number, user_turns)

    def _opened(self, store: Store) -> SessionWriter:
        if self._writer is None:
            self._writer = SessionWriter(store, self._start, self._path, self._progress)
        return self._writer

    def _is_repeated(self) -> bool:
        """Whether all answers so far are another file's, as a resumed session's begin."""
        store = self._store
        if self._repeats is None and self._is_elsewhere and store is not None:
            ids = [turn_id(self._start.id, number) for number in range(1, self._known + 1)]
            heads = store.heads(ids)
            self._repeats = [heads[id].fields.get("assistant") if id in heads else "" for id in ids]
        known, given = self._repeats or [], self._answers
        if not (known and given):
            return False
        # Either may end in the middle of an answer.
        last = min(len(known), len(given)) - 1
        return known[:last] == given[:last] and (
            self._begins(known[last], self._newest) or self._ends_in(known[last])
        )

    def _begins(self, address: str | None, answer: Message | None) -> bool:
        content = [] if answer is None else answer["content"]
        stored = self._content(address)
        return content[: len(stored)] == stored

    def _ends_in(self, address: str | None) -> bool:
        content = [] if self._newest is None else self._newest["content"]
        return self._content(address)[: len(content)] == content

    def _content(self, address: str | None) -> list[Any]:
        if address is None or self._store is None:
            return []
        content: list[Any] = load_message(address, self._store.blob)["content"]
        return content

    def _is_continued(self) -> bool:
        expected = None if self._repeats is not None else self._expected
        return expected is None or self._lines.checks.get(expected.line) == expected.check

    def _note_news(self, messages: int, tool_calls: int) -> None:
        report = self._report
        if not self.has_news:
            report.grown += self._was_there
            report.new += not self._was_there
        self.has_news = True
        report.messages += messages
        report.tool_calls += tool_calls

    def _end(self, reason: str) -> int:
        self.has_ended = True
        self._report.skipped[f"{self._path} ({self._start.id})"] = reason
        return 0


def _address_of(message: Message | None) -> str | None:
    return None if message is None else to_item(message, None, {}).key.address


# One session's exchanges, stored as an engine would have stored them


MAX_PENDING = 400
"""Documents of one transaction, for which live sessions wait."""
MAX_PENDING_BYTES = 8 * 1024 * 1024


class _NoFiles(FileSource):
    def recall(self, event: ToolEvent, pending: Pending) -> list[FileSnapshot]:
        """None: `HistoryFiles` stores them."""
        del event, pending
        return []


class SessionWriter:
    """Stores what is new of one session's exchanges."""

    # What lies at a path now is not known: a history shows what its tools said of files, on some
    # machine, at some time. So a tool call names its files in its arguments alone, and what they
    # held is stored apart from the files of this machine (`files.py`).

    def __init__(
        self, store: Store, start: HistorySession, file: Path, progress: HistoryProgress
    ) -> None:
        self._progress = progress
        self._progress.file = str(file)
        self._start = start
        self._system: tuple[Message, ...] = ()
        self._session = open_session(
            store,
            _NoFiles(store, FilesystemMap("history", [], cwd=start.cwd)),
            Beginning(
                start.id, start.cwd, start.harness, str(file), start.parent, start.started_by
            ),
            origin=f"{start.harness} {file}",
        )
        self._objects = ObjectWriter(self._session.objects, self._session.chat, self._session.inbox)
        self._files = HistoryFiles(self._session.objects, self._commit)

    def take(self, exchange: Exchange, number: int, user_turns: int) -> None:
        """Stores a new or grown exchange; `number` from 1. Raises `Conflict` if another process
        stored some meanwhile."""
        session = self._session
        # In the order in which an engine meets them, so that handles are the same.
        items = _Items(exchange, session.objects.workspace.blobs, user_turns)
        session.chat.turns = number - 1
        for record in exchange.answer:
            if record.system and record.system != self._system:
                self._take_system(record.system)
        for item in items.before:
            self._objects.other(item)
        self._objects.turn(items.answer, {item.call_id: item for item in items.results})
        for item, record in zip(items.results, exchange.results, strict=True):
            known = len(session.objects.index)
            shown = self._objects.result(item).shown
            if shown is not None and not record.is_edited:
                call = session.objects.index.entries[shown.object].object
                before, again = record.file_before, shown.object <= known
                self._files.take(item, items.whole, call, before=before, again=again)
        session.chat.turns = max(number, self._progress.exchanges)
        advance(self._progress, exchange, number)
        # Bounded, since nothing of a transaction is stored before all of it is in memory.
        size = sum(map(len, session.objects.workspace.blobs.values()))
        if len(session.objects.workspace.pending) >= MAX_PENDING or size >= MAX_PENDING_BYTES:
            self._commit()

    def finish(self, state: FileState) -> None:
        """Stores the rest, and the file's state."""
        self._progress.complete = [*state]
        self._commit()

    def _take_system(self, messages: tuple[Message, ...]) -> None:
        self._system, objects = messages, self._session.objects
        text = sections_as_text([*messages])
        if system_prompt_id(self._start.id) in objects.workspace.pending:
            # A transaction holds one version of a document.
            self._commit()
        take_system(objects, self._session.frame, text, tools_declared(messages))

    def _commit(self) -> None:
        self._objects.finish()
        workspace = self._session.objects.workspace
        workspace.put_over(self._wrapper(), workspace.store.head(session_object_id(self._start.id)))
        workspace.commit()

    def _wrapper(self) -> HistorySessionDocument:
        start, id = self._start, self._start.id
        stored = self._session.objects.store.head(session_object_id(id))
        parent = start.parent if stored is None else stored.fields.get("parent_session")
        return HistorySessionDocument(
            id=session_object_id(id),
            session_id=id,
            harness=start.harness,
            chat_ref=chat_id(id),
            system_prompt_ref=system_prompt_id(id),
            cwd=start.cwd,
            host_file=self._progress.file,
            parent_session=parent,
            started_by=start.started_by,
            provenance=Provenance(origin=self._session.info.origin, generator="system"),
            ingested=self._progress.as_fields(),
        ).seal()


class _Items:
    def __init__(self, exchange: Exchange, blobs: dict[str, bytes], user_turns: int) -> None:
        self._user_turns = user_turns
        self.before = [
            self._item(record.message, record.entry, blobs) for record in exchange.before
        ]
        self.whole = exchange.message()
        entry = exchange.answer[0].entry if exchange.answer else None
        self.answer = None if self.whole is None else self._item(self.whole, entry, blobs)
        self.results = [
            self._item(record.message, record.entry, blobs) for record in exchange.results
        ]

    def _item(self, message: Message, entry: str | None, blobs: dict[str, bytes]) -> Item:
        item = to_item(message, entry, blobs)
        self._user_turns += item.kind == "user"
        item.turn = self._user_turns
        return item
