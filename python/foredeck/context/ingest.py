"""New messages become objects: tool calls, files, turns, and their places in the index."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Any

from foredeck.context.conversation import CONTEXT_TOOLS
from foredeck.context.index import Entry, Seen
from foredeck.context.items import Call, Item, Key
from foredeck.context.session import Observation, Session
from foredeck.context.wording import args_display
from foredeck.context.workspace import PENDING
from foredeck.model.canonical import hash_text
from foredeck.model.documents import (
    ChatDocument,
    FileDocument,
    Provenance,
    ToolcallDocument,
    chat_id,
)
from foredeck.model.ids import uuid7
from foredeck.model.messages import pack
from foredeck.model.records import SAME_TRANSACTION, TurnDocument
from foredeck.sources import Sighting, ToolEvent
from foredeck.store.protocol import Head, Token

TOOL_ORIGIN = "toolcall"


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

    def __init__(self, session: Session) -> None:
        self._session = session
        self._others: list[str] = []
        self._user: str | None = None
        self._assistant: Item | None = None
        self._objects: dict[str, str] | None = None
        """Provider's call id to the object's id, for the newest assistant message."""

    def assistant(self, item: Item, results: dict[str, Item], *, new: bool) -> None:
        """An assistant message with the results that answer it: its turn is complete now."""
        session = self._session
        self._assistant, self._objects = item, None
        if new and item.key.address not in session.log.known:
            turn_id = f"turn:{session.id}:{session.turns + 1}"
            self._objects = {
                call.id: self._object_id(call, results.get(call.id), turn_id) for call in item.calls
            }
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
        head = session.workspace.head(object_id)
        if item.key.address in session.log.known and head is not None:
            return self._known(item, head)
        told = session.observed.pop(item.call_id, None)
        if head is not None and told is None:
            entry, files, shown = self._stored(item, head)
        else:
            entry, files, shown = self._new(item, call, object_id, head, told)
        if item.tool in CONTEXT_TOOLS:
            return self._apply(item)
        for file in files:
            session.sets.show(file.ordinal)
        session.sets.show(entry.ordinal)
        subject = entry if shown is None else shown
        session.sets.activate(subject.ordinal)
        return Fact(subject.ordinal, subject.pin.version, hash_text(item.text))

    def observe(
        self,
        event: ToolEvent,
        call_id: str,
        blocks: list[dict[str, Any]],
        full_output: bytes | None = None,
    ) -> None:
        """A tool has run and its result is not in the list yet: store what it left behind.

        `full_output`: all that it wrote, where the host has cut the result.
        """
        session = self._session
        sightings = _objects(session.source.after_tool(event, pending=session.workspace.pending))
        full = None if full_output is None else session.workspace.put_bytes(full_output)
        session.observed[call_id] = Observation(sightings, full_output=full)
        for sighting in sightings:
            if sighting.document is not None:
                session.workspace.put(sighting.document)
            ordinal = session.index.by_object.get(sighting.object_id)
            if ordinal is None:
                continue
            if sighting.role in ("read", "written"):
                session.notices.pop(ordinal, None)
            elif sighting.document is not None:
                # Another tool of the agent did it, perhaps without the agent's knowing.
                session.notices[ordinal] = "deleted" if sighting.state == "deleted" else "changed"
        if session.workspace.head(call_id) is None:
            call = Call(call_id, event.tool, dict(event.input))
            item = _observed_item(event, call_id, blocks)
            document = self._toolcall(item, call, call_id, sightings, full)
            document.turn_ref = f"turn:{session.id}:{session.turns + 1}"
            session.workspace.put(document.seal())

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
        )
        session.workspace.put(turn.seal())

    def _object_id(self, call: Call, result: Item | None, turn_id: str) -> str:
        """The provider's id, or a new one where that names a different call already."""
        head = self._session.workspace.head(call.id)
        if head is None or self._same_call(head, call, result, turn_id):
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
            return Call(item.call_id, item.tool, {}), item.call_id or uuid7()
        if self._objects is None:
            self._objects = self._recorded_objects(assistant)
        return call, self._objects.get(call.id, call.id)

    def _recorded_objects(self, assistant: Item) -> dict[str, str]:
        """Objects of an assistant message that has its turn already."""
        where = {"session": self._session.id, "assistant": assistant.key.address}
        turns = self._session.store.query("turn", where)
        ids = turns[-1].fields.get("toolcall_ids") or [] if turns else []
        return {call.id: id for call, id in zip(assistant.calls, ids, strict=False)}

    def _same_call(self, head: Head, call: Call, result: Item | None, turn_id: str) -> bool:
        fields = head.fields
        if head.type != "toolcall" or fields.get("tool") != call.tool:
            return False
        if (fields.get("args") or {}) != pack(call.arguments, {}):
            return False
        if fields.get("chat_ref") == chat_id(self._session.id):
            return fields.get("turn_ref") in (None, turn_id)
        return result is None or fields.get("text_hash") == hash_text(result.text)

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
        newest = session.index.entries[ordinal].pin
        version = newest.version if newest.content_hash == pin.get("content_hash") else None
        return Fact(ordinal, version, text_hash, known=True)

    def _new(
        self, item: Item, call: Call, object_id: str, head: Head | None, told: Observation | None
    ) -> tuple[Entry, list[Entry], Entry | None]:
        """A result met for the first time: its entry, its files', and the file that it shows."""
        session = self._session
        if told is None:
            event = ToolEvent(
                item.tool, call.arguments, item.text, item.details, item.failed, session.cwd
            )
            told = Observation(_objects(session.recall(event, session.workspace.pending)))
        files = [self._meet_file(sighting, told.token) for sighting in told.sightings]
        shown = next(
            (
                entry
                for entry, sighting in zip(files, told.sightings, strict=True)
                if sighting.role == "read" and _shows_file(item, sighting)
            ),
            None,
        )
        if head is not None and self._is_stored(head):
            return session.see_head(head, call.id), files, shown
        document = self._toolcall(item, call, object_id, told.sightings, told.full_output)
        session.workspace.put(document)
        return session.see_document(document, call.id), files, shown

    def _stored(self, item: Item, head: Head) -> tuple[Entry, list[Entry], Entry | None]:
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
        pin = head.fields.get("file_pin") or {}
        return (
            session.see_head(head, item.call_id),
            [*files.values()],
            files.get(pin.get("object") or ""),
        )

    def _is_stored(self, head: Head) -> bool:
        """Whether the object needs no further version: what was indexed first is trusted."""
        fields = head.fields
        if fields.get("chat_ref") != chat_id(self._session.id):
            return True
        return fields.get("turn_ref") == f"turn:{self._session.id}:{self._session.turns}"

    def _meet_file(self, sighting: Sighting, token: Token | None) -> Entry:
        """A file's entry; its new version is written unless `token` has stored it already."""
        session = self._session
        document = sighting.document
        if document is not None:
            if token is None:
                session.workspace.put(document)
            return session.see(_seen_file(document, sighting, token))
        head = sighting.head or session.workspace.head(sighting.object_id)
        if head is None:
            raise AssertionError(f"{sighting.path}: sighted, but neither stored nor new")
        return session.see_head(head, sighting.path)

    def _toolcall(
        self,
        item: Item,
        call: Call,
        object_id: str,
        sightings: list[Sighting],
        full_output: str | None,
    ) -> ToolcallDocument:
        session = self._session
        blobs = session.workspace.blobs
        texts = [block for block in item.blocks if block.get("type") == "text"]
        images = [_image_blob(session, block) for block in item.blocks if _is_image(block)]
        document = ToolcallDocument(
            id=object_id,
            provenance=Provenance(origin=TOOL_ORIGIN, generator="tool"),
            content=item.text if texts or not images else None,
            tool=item.tool or call.tool,
            args=pack(call.arguments, blobs),
            args_display=args_display(call.arguments, session.cwd),
            status="fail" if item.failed else "ok",
            chat_ref=chat_id(session.id),
            turn_ref=f"turn:{session.id}:{session.turns}",
            file_refs=[sighting.object_id for sighting in sightings],
            file_pin=self._file_pin(item, sightings),
            provider_call_id=call.id,
            details=pack(item.details, blobs),
            images=images,
            full_output=full_output,
        )
        return document.seal()

    def _file_pin(self, item: Item, sightings: list[Sighting]) -> dict[str, Any] | None:
        """For a read: exactly which version of the file was current."""
        for sighting in sightings:
            if sighting.role == "read" and _shows_file(item, sighting):
                fields = _version_fields(sighting)
                return {"object": sighting.object_id, **fields}
        return None

    def _apply(self, item: Item) -> Fact:
        """A context tool's effect, as the tool itself decided and told in its details."""
        decision = (item.details or {}).get("foredeck") if isinstance(item.details, dict) else None
        if item.failed or not isinstance(decision, dict):
            return Fact(None, None, None)
        ordinal = decision.get("ordinal")
        if not isinstance(ordinal, int) or ordinal not in self._session.index.entries:
            return Fact(None, None, None)
        if item.call_id not in self._session.applied:
            apply_decision(self._session, decision)
        self._session.applied.discard(item.call_id)
        if decision.get("form") == "visible":
            return Fact(None, None, None, leans_on=ordinal)
        if decision.get("form") != "full":
            return Fact(None, None, None)
        return Fact(ordinal, decision.get("version"), decision.get("text_hash"))


def apply_decision(session: Session, decision: dict[str, Any]) -> None:
    """Change the sets as an `activate`, `deactivate`, `pin` or `unpin` has decided."""
    ordinal = decision["ordinal"]
    match decision.get("op"):
        case "activate":
            session.sets.activate(ordinal)
        case "deactivate":
            session.sets.deactivate(ordinal)
        case "pin":
            session.sets.pin(ordinal)
        case "unpin":
            session.sets.unpin(ordinal)


def _objects(sightings: list[Sighting]) -> list[Sighting]:
    """Those that are objects: a folder, or a file that was never there, is none."""
    return [s for s in sightings if s.document is not None or s.head is not None]


def _shows_file(item: Item, sighting: Sighting) -> bool:
    """Whether a read's result is the file's text, and not an image or an error."""
    return not item.failed and not item.has_image and sighting.state in ("text", "listed", "huge")


def _version_fields(sighting: Sighting) -> dict[str, Any]:
    document, head = sighting.document, sighting.head
    if document is not None:
        token, fields = (
            SAME_TRANSACTION,
            {
                "content_hash": document.content_hash,
                "text_hash": document.text_hash,
            },
        )
        return {"token": token, **fields}
    if head is not None:
        return {
            "token": SAME_TRANSACTION if head.token == PENDING else head.token,
            "content_hash": head.fields["content_hash"],
            "text_hash": head.fields.get("text_hash"),
        }
    return {}


def _seen_file(document: FileDocument, sighting: Sighting, token: Token | None) -> Seen:
    return Seen(
        document.id,
        document.type,
        sighting.path,
        document.content_hash,
        document.text_hash,
        document.metadata_view_hash,
        token or SAME_TRANSACTION,
    )


def _is_image(block: dict[str, Any]) -> bool:
    return block.get("type") == "image" and isinstance(block.get("data"), str)


def _image_blob(session: Session, block: dict[str, Any]) -> str:
    try:
        data = base64.b64decode(block["data"], validate=True)
    except (binascii.Error, ValueError):
        data = block["data"].encode(errors="surrogatepass")
    return session.workspace.put_bytes(data)


def _observed_item(event: ToolEvent, call_id: str, blocks: list[dict[str, Any]]) -> Item:
    return Item(
        Key(None, ""),
        "result",
        blocks,
        call_id=call_id,
        tool=event.tool,
        failed=event.is_error,
        details=event.details,
        text=event.text,
    )
