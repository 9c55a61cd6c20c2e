"""New messages become objects: tool calls, files, turns, and their places in the index."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from foredeck.context.intake.notices import store_notices
from foredeck.context.intake.toolcalls import (
    make_toolcall,
    meet_file,
    objects_among,
    same_call,
    shows_file,
)
from foredeck.context.messages.conversation import CONTEXT_TOOLS
from foredeck.context.messages.items import Call, Item
from foredeck.context.state.index import Entry
from foredeck.context.state.pending import Observation
from foredeck.context.state.session import Session
from foredeck.context.state.workspace import PENDING
from foredeck.model.canonical import hash_text
from foredeck.model.documents import ChatDocument, Provenance, ToolcallDocument, chat_id
from foredeck.model.ids import uuid7
from foredeck.model.records import SAME_TRANSACTION, TurnDocument
from foredeck.sources import ToolEvent
from foredeck.store.protocol import Head

KNOWS_ITS_FILE = ("read", "write", "edit")
"""Tools after which the model knows what is in the file; of a command it may not."""


@dataclass(frozen=True, slots=True)
class Fact:
    """What a result carries: the object whose content it shows, and which version."""

    subject: int | None
    version: int | None
    text_hash: str | None
    known: bool = False
    """The session has met this very message before: the sets stay as they are."""
    leans_on: int | None = None
    """A context tool's short answer speaks of this object, which is visible."""


class Ingest:
    """Takes one message after the other into a session's objects and sets."""

    def __init__(self, session: Session, answered: str | None = None) -> None:
        self._session = session
        self._answered = answered
        """The call that the one message answers which is taken in as soon as it is there."""
        self._others: list[str] = []
        self._user: str | None = None
        self._assistant: Item | None = None
        self._objects: dict[str, str] | None = None
        """Provider's call id to the object's id, for the newest assistant message."""
        self._given: set[str] = set()
        """Ids of its calls that have had a result."""

    def assistant(self, item: Item, results: dict[str, Item], *, new: bool) -> None:
        """An assistant message with the results that answer it: its turn is complete now."""
        session = self._session
        self._assistant, self._objects, self._given = item, None, set()
        if new and item.key.address not in session.log.known:
            turn_id = self._turn_id(session.turns + 1)
            self._objects = {
                call.id: self._object_id(call, results.get(call.id), turn_id) for call in item.calls
            }
            if item.calls or not self._is_taken(item):
                self._put_turn(item, turn_id)
        self._user, self._others = None, []

    def other(self, item: Item) -> None:
        """A message that is neither the assistant's nor a result."""
        if item.kind == "user" and self._user is None:
            self._user = item.key.address
        else:
            self._others.append(item.key.address)

    def result(self, item: Item) -> Fact:
        """A tool result: its object, the files that the tool touched, and the sets."""
        session = self._session
        call, object_id = self._call_of(item)
        if self.is_second(item):
            object_id = self._id_of_second(item)
        head = session.workspace.head(object_id)
        if item.key.address in session.log.known and head is not None:
            return self._known(item, head)
        told = session.pending.observations.pop(item.call_id, None)
        if head is not None and told is None:
            entry, files, shown = self._stored(call, head)
        else:
            entry, files, shown = self._new(item, call, object_id, head, told)
        if item.tool in CONTEXT_TOOLS:
            return self._apply(item)
        for file in files:
            session.branch.sets.show(file.ordinal)
        session.branch.sets.show(entry.ordinal)
        subject = entry if shown is None else shown
        session.branch.sets.activate(subject.ordinal)
        return Fact(subject.ordinal, subject.pin.version, hash_text(item.text))

    def is_second(self, item: Item) -> bool:
        """Whether a result answers a call that has had one in this very turn; if not, it now has.

        A provider takes one result for each call, so the prompt has the first alone. What the other
        says is kept all the same, as an object of its own.
        """
        is_second = item.call_id in self._given
        self._given.add(item.call_id)
        return is_second

    def finish(self) -> None:
        """Write the chat head, if turns were added."""
        session = self._session
        head = session.workspace.head(chat_id(session.id))
        if head is not None and (head.fields.get("turn_count") or 0) == session.turns:
            return
        chat = ChatDocument(
            id=chat_id(session.id),
            session_ref=session.id,
            turn_count=session.turns,
            provenance=Provenance(origin=session.id, generator="system"),
        )
        session.workspace.put(chat.seal())

    def _is_taken(self, item: Item) -> bool:
        """Whether an answer got its turn when it was given (`observing.take_answer`)."""
        where = {"session": self._session.id, "assistant": item.key.address}
        return bool(self._session.store.query("turn", where))

    def _put_turn(self, item: Item, turn_id: str) -> None:
        session = self._session
        session.turns += 1
        turn = TurnDocument(
            id=turn_id,
            session=session.id,
            user=self._user,
            assistant=item.key.address,
            others=self._others,
            toolcall_ids=list((self._objects or {}).values()),
            assistant_meta=item.meta,
            user_turn=item.turn,
            answers=self._answered,
        )
        session.workspace.put(turn.seal())

    def _object_id(self, call: Call, result: Item | None, turn_id: str) -> str:
        """The provider's id, or a new one where that names a different call already."""
        head = self._session.workspace.head(call.id)
        if head is None or same_call(self._session, head, call, result, turn_id):
            return call.id
        return uuid7()

    def _call_of(self, item: Item) -> tuple[Call, str]:
        """The call that a result answers, and the id of its object."""
        assistant = self._assistant
        call = (
            next((c for c in assistant.calls if c.id == item.call_id), None) if assistant else None
        )
        if assistant is None or call is None:
            # The call is not in the list: the object keeps what is known.
            return Call(item.call_id, item.tool, {}), self._orphan_id(item)
        if self._objects is None:
            self._objects = self._recorded_objects(assistant)
        return call, self._objects.get(call.id, call.id)

    def _orphan_id(self, item: Item) -> str:
        """The provider's id, unless that is missing or names something else already."""
        head = self._session.workspace.head(item.call_id)
        if head is None:
            return item.call_id or uuid7()
        same = head.type == "toolcall" and head.fields.get("text_hash") == hash_text(item.text)
        return item.call_id if same else uuid7()

    def _id_of_second(self, item: Item) -> str:
        """The id of the object that says the same, where there is one, else a new one."""
        session, text_hash = self._session, hash_text(item.text)
        for head in session.store.query("toolcall", {"provider_call_id": item.call_id}):
            own = head.fields.get("chat_ref") == chat_id(session.id)
            if own and head.fields.get("text_hash") == text_hash:
                return head.id
        first = session.workspace.head(item.call_id)
        same = first is not None and first.fields.get("text_hash") == text_hash
        return item.call_id if same else uuid7()

    def _recorded_objects(self, assistant: Item) -> dict[str, str]:
        """Objects of an assistant message that has its turn already."""
        where = {"session": self._session.id, "assistant": assistant.key.address}
        turns = self._session.store.query("turn", where)
        ids = turns[-1].fields.get("toolcall_ids") or [] if turns else []
        return {call.id: id for call, id in zip(assistant.calls, ids, strict=False)}

    def _known(self, item: Item, head: Head) -> Fact:
        """A result that the session has met before, on another branch or before a compaction."""
        session = self._session
        entry = session.see_head(head, item.call_id)
        if item.tool in CONTEXT_TOOLS:
            return self._apply(item)
        pin = head.fields.get("file_pin")
        ordinal = session.index.by_object.get(pin["object"]) if pin else None
        text_hash = hash_text(item.text)
        if pin is None or ordinal is None:
            return Fact(entry.ordinal, entry.pin.version, text_hash, known=True)
        return Fact(ordinal, pin.get("version"), text_hash, known=True)

    def _new(
        self, item: Item, call: Call, object_id: str, head: Head | None, told: Observation | None
    ) -> tuple[Entry, list[Entry], Entry | None]:
        """A result met for the first time: its entry, its files', and the file that it shows."""
        session = self._session
        if told is None:
            event = ToolEvent(
                item.tool, call.arguments, item.text, item.details, item.failed, session.cwd
            )
            told = Observation(objects_among(session.recall(event, session.workspace.pending)))
            self._forgive(told)
        files = [meet_file(session, sighting, told.token) for sighting in told.sightings]
        shown = next(
            (
                entry
                for entry, sighting in zip(files, told.sightings, strict=True)
                if shows_file(item, sighting)
            ),
            None,
        )
        if head is not None:
            return self._in_its_place(head, call, is_ours=True), files, shown
        document = make_toolcall(
            session,
            item,
            call,
            object_id,
            told.sightings,
            turn_ref=self._turn_id(session.turns),
            position=self._position(call),
            token=told.token,
            full_output=told.full_output,
        )
        session.workspace.put(document)
        return session.see_document(document, call.id), files, shown

    def _forgive(self, told: Observation) -> None:
        """What the agent has written was taken for somebody else's doing until now."""
        written = (s.object_id for s in told.sightings if s.role == "written")
        self._take_back(written)

    def _take_back(self, objects: Iterable[str]) -> None:
        """Nothing is to be told of these files; by an engine that starts after this one neither."""
        session = self._session
        for object_id in objects:
            session.pending.notices.withdraw(session.index.by_object.get(object_id, 0))
        store_notices(session)

    def _stored(self, call: Call, head: Head) -> tuple[Entry, list[Entry], Entry | None]:
        """A result that was stored before it could be met: by an engine that has died since, or
        in a session that this one is a copy of."""
        session = self._session
        at = None if head.token == PENDING else head.token
        files: dict[str, Entry] = {}
        for object_id in head.fields.get("file_refs") or ():
            file = session.store.head(object_id, at)
            if file is not None:
                source = file.fields.get("source") or {}
                files[object_id] = session.see_head(file, source.get("path") or "")
                newest = session.store.head(object_id)
                as_left = newest is not None and newest.token == file.token
                if as_left and head.fields["tool"] in KNOWS_ITS_FILE:
                    self._take_back([object_id])
        pin = head.fields.get("file_pin") or {}
        is_ours = head.fields.get("turn_ref") == self._turn_id(session.turns)
        return (
            self._in_its_place(head, call, is_ours=is_ours),
            [*files.values()],
            files.get(pin.get("object") or ""),
        )

    def _in_its_place(self, head: Head, call: Call, *, is_ours: bool) -> Entry:
        """A stored result's entry, once its place is right: its turn, if it is ours, and which of
        the turn's calls it is. What was stored when the tool ran is trusted as it is."""
        session, position = self._session, self._position(call)
        if not is_ours or self._is_stored(head, position):
            return session.see_head(head, call.id)
        document = session.store.get(head.id, ToolcallDocument)
        if document is None:
            return session.see_head(head, call.id)
        document.turn_ref, document.position = self._turn_id(session.turns), position
        if document.file_pin and document.file_pin.get("token") == SAME_TRANSACTION:
            document.file_pin["token"] = head.token
        session.workspace.put(document.seal())
        return session.see_document(document, call.id)

    def _is_stored(self, head: Head, position: int | None) -> bool:
        """Whether the object needs no further version: what was indexed first is trusted."""
        fields = head.fields
        if fields.get("chat_ref") != chat_id(self._session.id):
            return True
        if fields.get("position") != position:
            return False
        return bool(fields.get("turn_ref") == self._turn_id(self._session.turns))

    def _position(self, call: Call) -> int | None:
        """Which of its message's calls this is, None where the call is not in the list."""
        calls = [] if self._assistant is None else [c.id for c in self._assistant.calls]
        return calls.index(call.id) if call.id in calls else None

    def _turn_id(self, ordinal: int) -> str:
        return f"turn:{self._session.id}:{ordinal}"

    def _apply(self, item: Item) -> Fact:
        """A context tool's effect, as the tool itself decided and told in its details."""
        decision = (item.details or {}).get("foredeck") if isinstance(item.details, dict) else None
        if item.failed or not isinstance(decision, dict):
            return Fact(None, None, None)
        ordinal = decision.get("ordinal")
        entry = self._session.index.entries.get(ordinal) if isinstance(ordinal, int) else None
        if entry is None or entry.object != decision.get("object"):
            return Fact(None, None, None)
        if item.call_id not in self._session.branch.applied:
            apply_decision(self._session, decision)
        self._session.branch.applied.discard(item.call_id)
        if decision.get("form") == "visible":
            return Fact(None, None, None, leans_on=entry.ordinal)
        if decision.get("form") != "full":
            return Fact(None, None, None)
        return Fact(entry.ordinal, decision.get("version"), decision.get("text_hash"))


def apply_decision(session: Session, decision: dict[str, Any]) -> None:
    """Change the sets as an `activate`, `deactivate`, `pin` or `unpin` has decided."""
    ordinal = decision["ordinal"]
    match decision.get("op"):
        case "activate":
            session.branch.sets.activate(ordinal)
        case "deactivate":
            session.branch.sets.deactivate(ordinal)
        case "pin":
            session.branch.sets.pin(ordinal)
        case "unpin":
            session.branch.sets.unpin(ordinal)
