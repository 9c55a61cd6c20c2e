"""One session's exchanges, stored as an engine would have stored them.

Turns, tool calls and handles are made by the code that takes in messages of a live session. What
lies at a path now is not known: a history shows what its tools said of files, on some machine, at
some time. So a tool call names its files in its arguments alone, and what they held is stored apart
from the files of this machine (`files.py`).
"""

from __future__ import annotations

from pathlib import Path

from foredeck.context.intake.object_writer import ObjectWriter
from foredeck.context.messages.items import Item
from foredeck.context.messages.shape import Message, to_item
from foredeck.context.state.opening import Beginning, open_session
from foredeck.histories.exchanges import Exchange
from foredeck.histories.files import HistoryFiles
from foredeck.histories.records import HistorySession
from foredeck.histories.standing import FileState, HistoryProgress, HistorySessionDocument
from foredeck.model.documents import (
    Provenance,
    chat_id,
    session_object_id,
    system_prompt_id,
)
from foredeck.sources.filesystem import FilesystemMap
from foredeck.sources.recorded import RecordedSource
from foredeck.store.protocol import Store

MAX_PENDING = 400
"""Documents of one transaction: those of a live session wait for it."""
MAX_PENDING_BYTES = 8 * 1024 * 1024


class SessionWriter:
    """Stores what is new of one session's exchanges, which come in the order of the file."""

    def __init__(
        self, store: Store, start: HistorySession, file: Path, progress: HistoryProgress
    ) -> None:
        self._progress = progress
        self._progress.file = str(file)
        self._start = start
        self._session = open_session(
            store,
            RecordedSource(store, FilesystemMap("history", [], cwd=start.cwd)),
            Beginning(start.id, start.cwd, str(file), start.parent, start.started_by),
            recall=lambda _event, _pending: [],
            origin=f"{start.harness} {file}",
        )
        self._objects = ObjectWriter(self._session.objects, self._session.chat, self._session.inbox)
        self._files = HistoryFiles(self._session.objects, self._commit)

    def take(self, exchange: Exchange, number: int, user_turns: int) -> None:
        """Store an exchange that is new, or has grown. `number`: its place in the session, from 1;
        `user_turns`: how often the user had spoken before it.

        Raises `Conflict` where another process has stored some of the session meanwhile.
        """
        session = self._session
        items = _Items(exchange, session.objects.workspace.blobs, user_turns)
        session.chat.turns = number - 1
        for item in items.before:
            self._objects.other(item)
        self._objects.turn(items.answer, {item.call_id: item for item in items.results})
        for item, record in zip(items.results, exchange.results, strict=True):
            known = len(session.objects.index)
            handle = self._objects.result(item).subject
            if handle is not None:
                call = session.objects.index.entries[handle].object
                before, again = record.file_before, handle <= known
                self._files.take(item, items.whole, call, before=before, again=again)
        session.chat.turns = max(number, self._progress.exchanges)
        self._progress.advance(exchange, number)
        size = sum(map(len, session.objects.workspace.blobs.values()))
        if len(session.objects.workspace.pending) >= MAX_PENDING or size >= MAX_PENDING_BYTES:
            self._commit()

    def finish(self, state: FileState) -> None:
        """Store the rest, and that all of the file has been read, which is in this state."""
        self._progress.complete = [*state]
        self._commit()

    def _commit(self) -> None:
        """Store what is pending, with how far the reading has come, in one transaction."""
        self._objects.finish()
        workspace = self._session.objects.workspace
        workspace.put_over(self._wrapper(), workspace.store.head(session_object_id(self._start.id)))
        workspace.commit()

    def _wrapper(self) -> HistorySessionDocument:
        """The session's own document, as it is now."""
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
    """An exchange's messages as items; what must be stored to show them again goes to `blobs`."""

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
