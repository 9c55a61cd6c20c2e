"""One assistant message with its tool calls: which result answers which, and the object of each."""

from __future__ import annotations

from foredeck.context.intake.toolcalls import same_call
from foredeck.context.messages.items import Item, ToolUse
from foredeck.context.state.inbox import Inbox
from foredeck.context.state.objects import Objects
from foredeck.model.canonical import hash_text
from foredeck.model.documents import chat_id
from foredeck.model.ids import uuid7


class ToolRound:
    """The tool calls of one assistant message; of none at the beginning of a list.

    An object is called by the provider's id of its call, as long as that id names no other call:
    some local models count from `call_0` in every answer.
    """

    def __init__(self, objects: Objects, inbox: Inbox, assistant: Item | None = None) -> None:
        self._stored, self._inbox = objects, inbox
        self._assistant = assistant
        self._objects: dict[str, str] | None = None
        """Object ids by call id, once they are decided or found."""
        self._answered: set[str] = set()
        """Ids of the calls that have had a result."""

    @property
    def object_ids(self) -> list[str]:
        """The objects in the order of their calls; none before `name_objects`."""
        return list((self._objects or {}).values())

    def name_objects(self, results: dict[str, Item], turn_id: str) -> None:
        """Decide the object ids of a new turn. `results`: those at hand, by call id."""
        calls = self._assistant.calls if self._assistant else ()
        self._objects = {
            call.id: self._object_id(call, results.get(call.id), turn_id) for call in calls
        }

    def position(self, call: ToolUse) -> int | None:
        """Which of the message's calls this is, from 0; None where the call is not in the list."""
        ids = [] if self._assistant is None else [known.id for known in self._assistant.calls]
        return ids.index(call.id) if call.id in ids else None

    def answer(self, item: Item) -> bool:
        """Note that a result has come; returns whether its call has had one before.

        A provider takes one result for each call, so the prompt has the first alone. What the other
        says is kept all the same, as an object of its own.
        """
        is_second = item.call_id in self._answered
        self._answered.add(item.call_id)
        return is_second

    def call_of(self, item: Item, *, is_second: bool) -> tuple[ToolUse, str]:
        """The call that a result answers, and the id of the result's object."""
        assistant = self._assistant
        calls = () if assistant is None else assistant.calls
        call = next((call for call in calls if call.id == item.call_id), None)
        if assistant is None or call is None:
            # The call is not in the list: the object keeps what is known of it.
            call, object_id = ToolUse(item.call_id, item.tool, {}), self._id_without_call(item)
        else:
            if self._objects is None:
                self._objects = self._stored_objects(assistant)
            object_id = self._objects.get(call.id, call.id)
        return call, self._id_of_second(item) if is_second else object_id

    def _object_id(self, call: ToolUse, result: Item | None, turn_id: str) -> str:
        head = self._stored.workspace.head(call.id)
        if head is None or same_call(self._stored.info, self._inbox, head, call, result, turn_id):
            return call.id
        return uuid7()

    def _id_without_call(self, item: Item) -> str:
        """The provider's id, unless that is missing or names something else already."""
        head = self._stored.workspace.head(item.call_id)
        if head is None:
            return item.call_id or uuid7()
        same = head.type == "toolcall" and head.fields.get("text_hash") == hash_text(item.text)
        return item.call_id if same else uuid7()

    def _id_of_second(self, item: Item) -> str:
        """The id of the object that says the same, where there is one, else a new one."""
        text_hash = hash_text(item.text)
        for head in self._stored.store.query("toolcall", {"provider_call_id": item.call_id}):
            own = head.fields.get("chat_ref") == chat_id(self._stored.info.id)
            if own and head.fields.get("text_hash") == text_hash:
                return head.id
        first = self._stored.workspace.head(item.call_id)
        same = first is not None and first.fields.get("text_hash") == text_hash
        return item.call_id if same else uuid7()

    def _stored_objects(self, assistant: Item) -> dict[str, str]:
        """The objects of an assistant message whose turn is stored already."""
        where = {"session": self._stored.info.id, "assistant": assistant.key.address}
        turns = self._stored.store.query("turn", where)
        ids = turns[-1].fields.get("toolcall_ids") or [] if turns else []
        return {call.id: id for call, id in zip(assistant.calls, ids, strict=False)}
