"""Rebuilds what the model saw at a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from foredeck.context.messages.shape import Message, time_of
from foredeck.context.plan.codec import StoredPlan
from foredeck.context.state.call_log import CallLog
from foredeck.context.state.index import verify
from foredeck.errors import Missing, UnknownSession
from foredeck.hosts.outgoing import SlotPlan, to_ops
from foredeck.model.calls import CallRecord
from foredeck.model.documents import SystemPromptDocument
from foredeck.model.messages import MessageKey, load_message, load_messages, unpack
from foredeck.model.records import SAME_TRANSACTION, call_id
from foredeck.store.protocol import Head, Token
from foredeck.store.store import Store


@dataclass(frozen=True, slots=True)
class Prompt:
    """A call's prompt and record."""

    call: int
    system: list[Any]
    tools: list[Any]
    messages: list[Message]
    record: CallRecord
    edited: frozenset[int]
    """Positions of messages with content of foredeck's."""
    numbers: list[int | None]
    """Each message's number in the host's list, from 1; None: foredeck's own."""


def prompt_at(store: Store, session: str, call: int) -> Prompt:
    """The prompt of a call, counted from 1 over all branches.

    Raises `UnknownSession`, and `Missing` or `Corrupt`.
    """
    (prompt,) = prompts_at(store, session, call)
    return prompt


def prompts_at(store: Store, session: str, *calls: int) -> list[Prompt]:
    """Several prompts; shared parts are read once."""
    for call in calls:
        if store.head(call_id(session, call)) is None:
            raise _unknown(store, session, call)
    heads = store.heads(call_id(session, number) for number in range(1, max(calls) + 1))
    records = {id: CallRecord(head.fields) for id, head in heads.items()}

    def load(id: str) -> CallRecord:
        return records.get(id) or _record(store, id)

    states = [CallLog().sent(call_id(session, call), load) for call in calls]
    needed = {key.address for state in states for key in _shown(state)}
    by_address = load_messages(needed, store.blobs)
    # What is missing is asked for by itself, for its error.
    by_address |= {each: load_message(each, store.blob) for each in needed - by_address.keys()}
    return [
        _prompt(store, heads[call_id(session, call)], state, by_address)
        for call, state in zip(calls, states, strict=True)
    ]


def _shown(state: StoredPlan) -> Iterator[MessageKey]:
    for index, key in enumerate(state.keys):
        if index not in state.omitted or index + 1 in state.says:
            yield key


def _prompt(store: Store, head: Head, state: StoredPlan, known: Mapping[str, Message]) -> Prompt:
    messages = [known.get(key.address, {}) for key in state.keys]
    system, tools = system_at(store, head)
    ops = to_ops(state.outgoing(store.blob), lambda index: time_of(messages[index]))
    plan = SlotPlan().merged(0, ops)
    outgoing, left_out = plan.apply(messages), set(plan.omitted())
    host = {id(message) for message in messages}
    ours = {id(value) for name, value in ops if name == "say"}
    sent = (number for number in range(1, len(messages) + 1) if number - 1 not in left_out)
    numbers = [None if id(message) in ours else next(sent) for message in outgoing]
    edited = frozenset(
        n
        for n, message in enumerate(outgoing)
        if id(message) not in host and numbers[n] is not None
    )
    record = CallRecord(head.fields)
    return Prompt(record.ordinal, system, tools, outgoing, record, edited, numbers)


def _record(store: Store, id: str) -> CallRecord:
    head = store.head(id)
    if head is None:
        raise Missing(f"The call record {id} is not in the store.")
    return CallRecord(head.fields)


def system_at(store: Store, head: Head) -> tuple[list[Any], list[Any]]:
    """System messages and tools of a call.

    Raises `Missing` if gone, `Corrupt` if replaced.
    """
    ref = CallRecord(head.fields).system
    if ref is None:
        return [], []
    token = head.token if ref.token == SAME_TRANSACTION else Token(ref.token)
    document = store.get(ref.object, SystemPromptDocument, token)
    if document is None:
        raise Missing(f"The system prompt {ref.object} of this call is not in the store.")
    verify(ref, document.content_hash, document.text_hash)
    system, tools = unpack(document.messages, store.blob), unpack(document.tools, store.blob)
    return list(system), list(tools)


def _unknown(store: Store, session: str, call: int) -> UnknownSession:
    calls = len(store.query("call", {"session": session}))
    if not calls:
        return UnknownSession(
            f"No session {session!r} is stored. `foredeck sessions` lists those that are."
        )
    return UnknownSession(f"Session {session} has no call {call}: its calls go from 1 to {calls}.")
