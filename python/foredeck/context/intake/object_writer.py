"""The objects of new messages: turns, calls, files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from foredeck.context.intake.file_changes import store_notices
from foredeck.context.intake.toolcalls import (
    CallPlace,
    decision_in,
    list_nested,
    make_toolcall,
    objects_among,
    put_in_place,
    reads_file,
    same_call,
    see_file,
    unseen_nested,
)
from foredeck.context.messages.items import Item, ToolUse
from foredeck.context.plan.ops import Shown
from foredeck.context.state.chat import Chat
from foredeck.context.state.facilities import TurnFields
from foredeck.context.state.index import Entry
from foredeck.context.state.objects import PENDING, Objects
from foredeck.context.state.request import EarlyResult, Inbox
from foredeck.model.documents import (
    ChatDocument,
    Provenance,
    ToolcallDocument,
    chat_id,
    session_object_id,
)
from foredeck.model.identity import hash_text, uuid7
from foredeck.model.messages import answered_by, pack
from foredeck.model.own_tools import CONTEXT_TOOLS
from foredeck.model.records import TurnDocument, turn_id
from foredeck.model.sources import path_of
from foredeck.sources.snapshots import FileSnapshot, ToolEvent, attribute_to_tool
from foredeck.store.protocol import Head

KNOWS_ITS_FILE = ("read", "write", "edit")
"""After these the model knows the file's content."""


@dataclass(frozen=True, slots=True)
class ResultObject:
    """A result's object and version."""

    shown: Shown | None = None
    """None for a result without an object."""
    known: bool = False
    """Whether the session has met this message, so the sets stay."""
    refers_to: int | None = None
    """Handle in view that a context tool's short answer means."""


@dataclass(frozen=True, slots=True)
class _ResultEntries:
    """Index entries of a result: its own, its files', and that of the file it shows."""

    entry: Entry
    files: list[Entry]
    shown: Entry | None


class ObjectWriter:
    """`turn_fields`: what else turns hold. `answered`: the call an unlisted answer belongs
    to."""

    def __init__(
        self,
        objects: Objects,
        chat: Chat,
        inbox: Inbox,
        turn_fields: TurnFields = dict,
        answered: str | None = None,
    ) -> None:
        self._objects, self._chat, self._inbox = objects, chat, inbox
        self._turn_fields = turn_fields
        self._answered = answered
        self._user: str | None = None
        self._user_turn = 0
        self._others: list[str] = []
        self._extras: dict[str, Any] = {}
        self._round = ToolRound(objects, inbox)

    def assistant(self, item: Item, results: dict[str, Item], *, new: bool) -> None:
        """Takes an answer with its results, which completes its turn."""
        info, is_taken = self._objects.info, not new or item.key.address in self._chat.log.known
        if not is_taken and (not item.calls or info.was_read_in):
            # It got its turn when it was given (`early_results.take_answer`), if it ended a run and
            # so has no calls, or when its session's history was read in.
            where = {"session": info.id, "assistant": item.key.address}
            is_taken = bool(self._objects.store.query("turn", where))
        if not is_taken:
            self.turn(item, results)
        else:
            self._round = ToolRound(self._objects, self._inbox, item)
            self._user, self._others, self._extras = None, [], {}

    def turn(self, item: Item | None, results: dict[str, Item]) -> None:
        """The next turn: what was said since the last, and the answer, if any."""
        self._round = ToolRound(self._objects, self._inbox, item)
        self._chat.turns += 1
        self._round.name_objects(results, self._turn_id)
        if item is not None:
            self.keep_extras(item)
        turn = TurnDocument(
            id=self._turn_id,
            session=self._objects.info.id,
            user=self._user,
            assistant=None if item is None else item.key.address,
            others=self._others,
            toolcall_ids=list(self._round.ids or ()),
            assistant_meta={} if item is None else item.meta,
            user_turn=self._user_turn if item is None else item.turn,
            answers=self._answered,
            extras=self._extras or None,
            **self._turn_fields(),
        )
        if self._objects.info.origin:
            turn.provenance = Provenance(origin=self._objects.info.origin, generator="system")
        self._objects.workspace.put(turn.seal())
        self._user, self._others, self._extras = None, [], {}

    def other(self, item: Item) -> None:
        """Takes a message that is neither the assistant's nor a result."""
        self.keep_extras(item)
        if item.kind == "user" and self._user is None:
            self._user, self._user_turn = item.key.address, item.turn
        else:
            self._others.append(item.key.address)

    def keep_extras(self, item: Item) -> None:
        if item.extras:
            self._extras[item.key.address] = pack(item.extras, self._objects.workspace.blobs)

    def old_result(self, item: Item) -> None:
        self.keep_extras(item)
        self._round.answer(item)

    def result(self, item: Item) -> ResultObject:
        self.keep_extras(item)
        is_second = self._round.answer(item)
        call, object_id = self._round.call_of(item, is_second=is_second)
        head = self._objects.workspace.head(object_id)
        if item.key.address in self._chat.log.known and head is not None:
            return self._known(item, head)
        observed = self._inbox.early_results.pop(item.call_id, None)
        if self._round.is_ambiguous(item.call_id):
            observed = None  # it may be that of another call
        if head is not None and observed is None:
            entries = self._stored(call, head)
        else:
            entries = self._new(item, call, object_id, head, observed)
        list_nested(self._objects, self._chat.branch, item, object_id, self._turn_id)
        if item.tool in CONTEXT_TOOLS:
            # The result itself joins no set: its decision says which object does.
            return self._context_tool(item)
        sets = self._chat.branch.sets
        for entry in (*entries.files, entries.entry):
            sets.show(entry.ordinal)
        subject = entries.entry if entries.shown is None else entries.shown
        sets.activate(subject.ordinal)
        return ResultObject(Shown(subject.ordinal, subject.newest.version, hash_text(item.text)))

    def finish(self) -> None:
        """Writes the chat's head."""
        head = self._objects.workspace.head(chat_id(self._objects.info.id))
        if head is not None and (head.fields.get("turn_count") or 0) == self._chat.turns:
            return
        session = self._objects.info.id
        chat = ChatDocument(
            id=chat_id(session),
            session_ref=session_object_id(session),
            turn_count=self._chat.turns,
            provenance=Provenance(origin=session, generator="system"),
        )
        self._objects.workspace.put(chat.seal())

    @property
    def _turn_id(self) -> str:
        return turn_id(self._objects.info.id, self._chat.turns)

    def _known(self, item: Item, head: Head) -> ResultObject:
        entry = self._objects.see_head(head, item.call_id)
        if item.tool in CONTEXT_TOOLS:
            return self._context_tool(item)
        version_ref = _ref_with_text(head)
        file = self._objects.index.by_object.get(version_ref["object"]) if version_ref else None
        text_hash = hash_text(item.text)
        if version_ref is None or file is None:
            return ResultObject(Shown(entry.ordinal, entry.newest.version, text_hash), known=True)
        return ResultObject(Shown(file, version_ref.get("version"), text_hash), known=True)

    def _new(
        self,
        item: Item,
        call: ToolUse,
        object_id: str,
        head: Head | None,
        observed: EarlyResult | None,
    ) -> _ResultEntries:
        """Stores a result met for the first time; `head` is its object, if stored early."""
        if observed is None:
            observed = self._recall(item, call)
            attribute_to_tool(observed.snapshots, object_id)
        snapshots = observed.snapshots
        files = [see_file(self._objects, snapshot, observed.token) for snapshot in snapshots]
        among = zip(files, snapshots, strict=True)
        file_entry = next((file for file, snapshot in among if reads_file(item, snapshot)), None)
        if file_entry is not None and file_entry.newest.text_hash is None:
            file_entry = None  # only the result has what was read
        if head is not None:
            return _ResultEntries(self._in_its_place(head, call, is_ours=True), files, file_entry)
        document = make_toolcall(
            self._objects,
            item,
            call,
            object_id,
            snapshots,
            CallPlace(self._turn_id, self._round.position(call)),
            token=observed.token,
            full_output=observed.full_output,
        )
        self._objects.workspace.put(document)
        return _ResultEntries(self._objects.see_document(document, call.id), files, file_entry)

    def _recall(self, item: Item, call: ToolUse) -> EarlyResult:
        """What can still be said of the files of an unobserved tool."""
        event = ToolEvent(
            item.tool, call.arguments, item.text, item.details, item.failed, self._objects.info.cwd
        )
        source, workspace = self._objects.source, self._objects.workspace
        pending, touched = dict(workspace.pending), dict[str, FileSnapshot]()
        for each in (event, *unseen_nested(self._objects, item)):
            for snapshot in objects_among(source.recall(each, pending)):
                touched.setdefault(snapshot.object_id, snapshot)
                if snapshot.document is not None:
                    # A script may write a file again: the next call goes on from here.
                    touched[snapshot.object_id] = snapshot
                    pending[snapshot.object_id] = snapshot.document
        # What the agent wrote was taken for another's change until now.
        self._withdraw_notices(s.object_id for s in touched.values() if s.role == "written")
        return EarlyResult([*touched.values()])

    def _withdraw_notices(self, objects: Iterable[str]) -> None:
        for object_id in objects:
            self._inbox.notices.withdraw(self._objects.index.by_object.get(object_id, 0))
        store_notices(self._objects, self._inbox)

    def _stored(self, call: ToolUse, head: Head) -> _ResultEntries:
        at = None if head.token == PENDING else head.token
        files: dict[str, Entry] = {}
        # What `activate` has shown is known already; its decision says what that means here.
        is_context_tool = head.fields.get("tool") in CONTEXT_TOOLS
        for object_id in () if is_context_tool else head.fields.get("file_refs") or ():
            file = self._objects.store.head(object_id, at)
            if file is not None:
                files[object_id] = self._objects.see_head(file, path_of(file.fields) or "")
                newest = self._objects.store.head(object_id)
                # If the file was written again since the tool ran, the notice must stay.
                as_left = newest is not None and newest.token == file.token
                if as_left and head.view(ToolcallDocument).tool in KNOWS_ITS_FILE:
                    self._withdraw_notices([object_id])
        version_ref = _ref_with_text(head) or {}
        is_ours = head.fields.get("turn_ref") == self._turn_id
        entry = self._in_its_place(head, call, is_ours=is_ours)
        return _ResultEntries(entry, [*files.values()], files.get(version_ref.get("object") or ""))

    def _in_its_place(self, head: Head, call: ToolUse, *, is_ours: bool) -> Entry:
        if not is_ours:
            return self._objects.see_head(head, call.id)
        place = CallPlace(self._turn_id, self._round.position(call))
        return put_in_place(self._objects, head, call.id, place)

    def _context_tool(self, item: Item) -> ResultObject:
        """Applies a context tool's decision, unless the sets have it, and says what its answer
        shows."""
        # The decision is in the result itself, so that it is carried out wherever the result is in
        # a message list: after a crash, on another branch, in a fork.
        outcome, branch = decision_in(self._objects, item), self._chat.branch
        if outcome is None:
            return ResultObject()
        entry, decision = outcome
        if item.call_id not in branch.applied:
            branch.sets.apply(decision)
        branch.applied.discard(item.call_id)
        match decision.get("form"):
            case "visible":
                return ResultObject(refers_to=entry.ordinal)
            case "full":
                version, text_hash = decision.get("version"), decision.get("text_hash")
                return ResultObject(Shown(entry.ordinal, version, text_hash))
        return ResultObject()


def _ref_with_text(head: Head) -> dict[str, Any] | None:
    # Of a file that is too large or out of reach, and of an image, only the result has what was
    # read: that is what `activate` brings back.
    version_ref: dict[str, Any] | None = head.fields.get("file_version_ref")
    is_text = version_ref is not None and version_ref.get("text_hash") is not None
    return version_ref if is_text and not head.fields.get("images") else None


class ToolRound:
    """The calls of one assistant message."""

    # An object has the provider's id of its call, as long as that id names no other call: some
    # local models count from `call_0` in every answer.

    def __init__(self, objects: Objects, inbox: Inbox, assistant: Item | None = None) -> None:
        self._objects, self._inbox = objects, inbox
        self._assistant = assistant
        self._calls = () if assistant is None else assistant.calls
        self.ids: list[str] | None = None
        """Object ids in call order, once decided."""
        self._open = [*range(len(self._calls))]
        self._answered: set[str] = set()
        """Ids of the calls that have had a result."""
        self._current: int | None = None

    def name_objects(self, results: dict[str, Item], turn_id: str) -> None:
        """Decides the object ids of a new turn; `results` are by call id."""
        self.ids = []
        for call in self._calls:
            head, result = self._objects.workspace.head(call.id), results.get(call.id)
            is_free = head is None or (
                not self.is_ambiguous(call.id)
                and same_call(self._objects.info, self._inbox, head, call, result, turn_id)
            )
            is_named = call.id and is_free and call.id not in self.ids
            self.ids.append(call.id if is_named else uuid7())

    def is_ambiguous(self, id: str) -> bool:
        return sum(call.id == id for call in self._calls) > 1

    def position(self, call: ToolUse) -> int | None:
        return next((n for n, other in enumerate(self._calls) if other is call), None)

    def answer(self, item: Item) -> bool:
        # A provider takes one result for each call, so the prompt has the first alone. What the
        # other says is kept as an object of its own.
        at = answered_by([self._calls[number].id for number in self._open], item.call_id)
        if at is not None:
            self._current = self._open.pop(at)
        else:
            ids = [call.id for call in self._calls]
            self._current = ids.index(item.call_id) if item.call_id in ids else None
        is_second = at is None and item.call_id in self._answered
        self._answered.add(item.call_id)
        return is_second

    def call_of(self, item: Item, *, is_second: bool) -> tuple[ToolUse, str]:
        """The call a result answers, and the result's object id."""
        assistant, at = self._assistant, self._current
        if assistant is None or at is None:
            # The call is not in the list: the object keeps what is known of it.
            call, object_id = ToolUse(item.call_id, item.tool, {}), self._id_without_call(item)
        else:
            if self.ids is None:
                where = {"session": self._objects.info.id, "assistant": assistant.key.address}
                turns = self._objects.store.query("turn", where)
                self.ids = list(turns[-1].fields.get("toolcall_ids") or ()) if turns else []
            call = self._calls[at]
            object_id = self.ids[at] if at < len(self.ids) else call.id or uuid7()
        return call, self._id_of_second(item) if is_second else object_id

    def _id_without_call(self, item: Item) -> str:
        head = self._objects.workspace.head(item.call_id)
        if head is None:
            return item.call_id or uuid7()
        same = head.type == "toolcall" and head.fields.get("text_hash") == hash_text(item.text)
        return item.call_id if same else uuid7()

    def _id_of_second(self, item: Item) -> str:
        # The list is read again after a restart: then the second result has its object already.
        text_hash = hash_text(item.text)
        for head in self._objects.store.query("toolcall", {"provider_call_id": item.call_id}):
            own = head.fields.get("chat_ref") == chat_id(self._objects.info.id)
            if own and head.fields.get("text_hash") == text_hash:
                return head.id
        first = self._objects.workspace.head(item.call_id)
        same = first is not None and first.fields.get("text_hash") == text_hash
        return item.call_id if same else uuid7()
