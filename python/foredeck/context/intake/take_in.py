"""Takes in the host's list, aligned with the call records.

Each new message joins the branch, becomes an object and is rendered.

A history older than foredeck counts as one call that went out without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from foredeck.context.compactions import name_summary
from foredeck.context.intake.object_writer import ObjectWriter, ResultObject
from foredeck.context.layouts import Layout
from foredeck.context.messages.items import Item, JoinedItems, message_text, tips_of, value_chars
from foredeck.context.plan.ops import MessageSpan, Op, Shown, as_host, omit, recipe_chars
from foredeck.context.plan.wires import repair
from foredeck.context.rebase import first_mutable
from foredeck.context.rendering import RenderContext, referring
from foredeck.context.state.call_log import BranchState, shared_length
from foredeck.context.state.chat import Branch, Chat
from foredeck.context.state.facilities import TurnFields
from foredeck.context.state.objects import Objects, paste_of, user_object
from foredeck.context.state.request import Inbox, Outcome, PromptFrame, Request
from foredeck.errors import OutOfSync
from foredeck.model.call_values import ADOPTED
from foredeck.model.documents import (
    Fields,
    Provenance,
    SystemPromptDocument,
    chat_id,
    session_object_id,
    system_prompt_id,
)
from foredeck.model.messages import MessageKey, newest_answer, pack
from foredeck.model.records import call_id

HOST_SENT = ("fallback", "off")

LONG = 1000
"""Messages; longer histories take a second or more, and show progress."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """What is known of the host's list, and which calls it reports."""

    items: Sequence[Item]
    """The whole list."""
    matched: int
    """Messages from the beginning that were sent before."""
    continued: bool
    """Whether the list goes on from the last answer."""
    replaced: bool
    """Whether it continues nothing that was sent."""
    without_us: list[Outcome]
    """Its unrecorded calls that went out otherwise than answered."""


def align(chat: Chat, request: Request) -> Alignment:
    """Goes to the branch with the longest common beginning.

    Raises `OutOfSync` if the host omits messages that the session lacks.
    """
    plan = chat.branch.plan
    if request.keep > len(plan):
        raise OutOfSync("The engine does not hold the messages before these.")
    record, ahead = chat.branch_record, chat.branch.ahead
    applied = [outcome.call for outcome in request.outcomes if outcome.kind == "applied"]
    in_step = record is not None and applied[-1:] == [record.ordinal]
    if request.keep and not (in_step or ahead):
        raise OutOfSync("The host does not hold the engine's last answer.")
    items: Sequence[Item] = JoinedItems(plan.items, request.keep, request.items)
    without_us = [o for o in request.outcomes if o.kind in HOST_SENT and o.messages <= len(items)]
    # Messages that a call has held before may have been sent on another branch: then the
    # records have to say how.
    is_known = any(item.key.address in chat.log.known for item in request.items)
    # Nearly every call: the list goes on from our last answer, and no record needs to be read.
    if in_step and not without_us and not is_known and request.keep == len(plan):
        return Alignment(items, len(plan), True, False, [])
    if ahead and not (request.outcomes or is_known) and request.keep == len(plan):
        return Alignment(items, len(plan), False, False, [])
    items = [*items]
    # Before anything is matched: a provider has never seen the prompts of these.
    for outcome in request.outcomes:
        if outcome.kind == "aborted" and outcome.call is not None:
            chat.log.unsend(call_id(chat.info.id, outcome.call))
    keys = [item.key for item in items]
    tips = tips_of(keys)
    base, without_us = _unrecorded(chat, without_us, keys)
    matched_id, matched, state = _match(chat, base, keys, tips)
    before = _before(chat, matched_id, matched, state)
    addresses = {key.address for key in before.keys}
    # Results that the call before had too, though they are to be rendered again.
    again = [i for i in items[matched:] if i.kind == "result" and i.key.address in addresses]
    # The host has changed its list (a compaction, an extension), not its branch: what was active
    # and pinned stays so.
    if again or (matched == 0 and chat.log.newest > 0):
        state.sets.become(before.sets)
    carried_out = (item.call_id for item in again)
    chat.branch = Branch.restore(
        state, items[:matched], matched_id, chat.store, carried_out, tips=tips[:matched]
    )
    replaced = matched == 0 and chat.log.newest > 0 and not without_us
    if not (without_us or matched or chat.log.newest):
        without_us = _adopted(items)
    return Alignment(items, matched, False, replaced, without_us)


def _adopted(items: Sequence[Item]) -> list[Outcome]:
    for index in range(len(items) - 1, -1, -1):
        item = items[index]
        if item.kind == "assistant" and not item.unsent:
            return [Outcome("off", messages=index, time_ms=item.time_ms, reason=ADOPTED)]
    return []


def _unrecorded(
    chat: Chat, without_us: list[Outcome], keys: list[MessageKey]
) -> tuple[str | None, list[Outcome]]:
    # The host reports them until an answer of ours has reached it in time, so some may be recorded
    # already. What went out without us had the edits of the call that it names, whatever was
    # decided after that one; each further one builds on the one before it.
    log, new, base = chat.log, list[Outcome](), None
    for outcome in without_us:
        id = log.host_calls.get((outcome.time_ms, outcome.messages))
        if id is None:
            new.append(outcome)
        elif not new and _common(chat.replay(id), keys) == outcome.messages:
            base = id
    if not new:
        return None, []
    if base is None and new[0].call is not None:
        base = call_id(chat.info.id, new[0].call)
    return base, new


def _match(
    chat: Chat, base: str | None, keys: list[MessageKey], tips: list[str]
) -> tuple[str | None, int, BranchState]:
    log, call = chat.log, base
    if log.record(call) is not None and call not in log.unsent:
        state = chat.replay(call)
        matched = _common(state, keys)
    else:
        call, matched = log.longest_match(keys, tips)
        state = chat.replay(call)
    while call is not None and state.is_cut(matched):
        # What replaces messages covers some that are not in this list: go back to before it did.
        before = log.record(call)
        call = before.parent if before else None
        state = chat.replay(call)
        matched = _common(state, keys)
    state.cut(matched)
    return call, matched, state


def _common(state: BranchState, keys: list[MessageKey]) -> int:
    return shared_length((key.address for key in state.keys), keys)


def _before(chat: Chat, matched_id: str | None, matched: int, state: BranchState) -> BranchState:
    newest = chat.branch.call or call_id(chat.info.id, chat.log.newest)
    record = chat.log.record(newest) if newest == matched_id else None
    if record is not None and record.length == matched:
        return state
    return chat.replay(newest)


# How far behind an assistant message its results are searched for: no model makes as many calls at
# once, and a list without a further answer need not be walked to its end.
MAX_PARALLEL = 1000


def take_in(
    context: RenderContext,
    inbox: Inbox,
    layout: Layout,
    items: Sequence[Item],
    first_new: int,
    *,
    turn_fields: TurnFields = dict,
    pastes: bool = True,
) -> None:
    """Appends the new messages, from `first_new` on, to the branch. `pastes`: long user texts
    become objects."""
    objects, chat, plan = context.objects, context.chat, context.plan
    writer = ObjectWriter(objects, chat, inbox, turn_fields)
    # All of them before any is rendered: whether a result is in flight depends on what follows.
    # Those of a call that goes out as we say have joined the plan already (`Assembler.assemble`).
    for item in items[len(plan) :]:
        plan.append(item)
    # From the newest assistant message before the new ones on, so that the turn under way is whole.
    indexes = range(max(0, newest_answer(items, first_new)), len(items))
    # One question to the store for all calls, and not one for each.
    objects.workspace.look_up(call.id for index in indexes for call in items[index].calls)
    is_long = chat.log.newest == 0 and len(indexes) >= LONG
    for index in indexes:
        if is_long and (count := index - indexes.start) % LONG == 0:
            inbox.notify(f"foredeck takes in what was said before: {count:,} of {len(indexes):,}")
        item = items[index]
        if item.kind == "assistant":
            writer.assistant(item, _results_after(items, index), new=index >= first_new)
        elif item.kind != "result":
            writer.other(item)
            if pastes and index >= first_new:
                _show_paste(context, index, item)
        elif index >= first_new:
            _place(context, layout, index, writer.result(item))
        else:
            writer.old_result(item)
    writer.finish()


def _place(context: RenderContext, layout: Layout, index: int, result: ResultObject) -> None:
    plan, sets, content = context.plan, context.sets, result.shown
    subject = None if content is None else content.object
    if plan.is_omitted(index):
        leave_out(context, index, subject)
        return
    if result.refers_to is not None:
        # A reference is a use of the newest copy.
        base = plan.newest_holder(result.refers_to)
        plan.write(index, Op("note", base=base))
        if base is not None:
            context.branch.keep_base(base)
        return
    was_folded = result.known and subject in sets.pool and subject not in sets.active
    if was_folded and index <= plan.last_assistant():  # not in flight
        reference = referring(context, index, shown=content)
        # A reference line longer than the content would save nothing.
        if recipe_chars(reference.blocks, plan.items[index]) < plan.chars[index]:
            plan.write(index, reference)
            return
    if result.known and subject is not None:
        sets.activate(subject)
    layout.place(context, index, content)
    # Of `same` there is nothing to keep here: the layout keeps the message that it refers to.
    if subject is not None and plan.ops[index].form != "same":
        context.branch.keep(index, subject)


def _show_paste(context: RenderContext, index: int, item: Item) -> None:
    text = paste_of(item)
    if text is None or context.plan.is_omitted(index):
        return
    entry = user_object(context.objects, text)
    version, digest = entry.newest.version, entry.newest.text_hash
    context.sets.activate(entry.ordinal)
    context.plan.write(index, Op(shown=Shown(entry.ordinal, version, digest)))
    context.branch.keep(index, entry.ordinal)


def take_system(
    objects: Objects, frame: PromptFrame, messages: list[Any] | None, tools: list[Any] | None
) -> None:
    """Keeps what the host puts around the chat; None means unchanged."""
    if messages is None and tools is None and frame.version is not None:
        return
    if messages is not None:
        frame.messages = messages
    if tools is not None:
        frame.tools = tools
    frame.hashes.clear()
    blobs = objects.workspace.blobs
    document = SystemPromptDocument(
        id=system_prompt_id(objects.info.id),
        session_ref=session_object_id(objects.info.id),
        content="\n\n".join(text for message in frame.messages if (text := message_text(message))),
        messages=pack(frame.messages, blobs),
        tools=pack(frame.tools, blobs),
        provenance=Provenance(origin=objects.info.id, generator="system"),
    ).seal()
    frame.chars = len(document.content or "") + value_chars(frame.tools)
    head = objects.workspace.head(document.id)
    if head is None or _given(head.fields) != _given(document.model_dump()):
        objects.workspace.put(document)
        frame.version = objects.see_document(document).newest
        # At the first call, so that the chat has the handle after the system prompt's, whatever
        # else the session meets before.
        chat = objects.workspace.head(chat_id(objects.info.id))
        if chat is not None and chat.id not in objects.index.by_object:
            objects.see_head(chat)


def repair_list(context: RenderContext, items: Sequence[Item], start: int) -> None:
    """Decides inserts and omissions anew from `start` on."""
    plan, repairs = context.plan, repair(items, start)
    plan.repair(repairs, start)
    name_summary(context.objects, context.chat, items, start)
    others = [index for index in plan.omitted(start) if index not in repairs.omitted]
    covered = [MessageSpan(0, plan.compacted[0]), *plan.covered] if others else []
    for index in others:
        if not any(first <= index < until for first, until in covered):
            plan.write(index, as_host(plan.ops[index]))
    for index in sorted(repairs.omitted):
        leave_out(context, index, plan.ops[index].subject)


def leave_out(context: RenderContext, index: int, subject: int | None) -> None:
    """Omits a message, which then keeps nothing active."""
    context.branch.release(index, subject)
    context.plan.write(index, omit())


def put_layout_text(context: RenderContext, layout: Layout) -> None:
    """Replaces what the layout puts between the messages."""
    plan, items = context.plan, context.plan.items
    if layout.keeps_bytes and not plan.has_layout_text:
        return
    # What precedes sealed reasoning of the turn under way stays, since that is bound to it. What is
    # another layout's stays, too, until the turn has ended and all is rendered again.
    free = len(plan) + 1 if layout.keeps_bytes else first_mutable(plan)
    sealed_at = plan.says if plan.has_layout_text else ()
    # Where a list had ended with a call, text behind that would part it from its result now.
    results = {index for index in sealed_at if index < len(items) and items[index].kind == "result"}
    standing = plan.cut_layout(free, [i for i in results if not plan.is_omitted(i)])
    plan.put_layout(layout.inserts(context, standing))


def _results_after(items: Sequence[Item], index: int) -> dict[str, Item]:
    answers: dict[str, Item] = {}
    for following in range(index + 1, min(index + 1 + MAX_PARALLEL, len(items))):
        item = items[following]
        if item.kind == "assistant":
            break
        if item.kind == "result":
            answers[item.call_id] = item
    return answers


def _given(fields: Fields) -> tuple[Any, ...]:
    # Not the whole document: its nickname and description are the user's.
    return fields.get("text_hash"), fields.get("messages"), fields.get("tools")
