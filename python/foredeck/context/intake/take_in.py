"""Takes in what the host sends: each message joins the branch, becomes an object and is
rendered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from foredeck.context.compactions import name_summary
from foredeck.context.intake.alignment import with_progress
from foredeck.context.intake.object_writer import ObjectWriter, ResultObject
from foredeck.context.layouts import Layout
from foredeck.context.messages.items import Item, message_text, value_chars
from foredeck.context.plan.ops import MessageSpan, Op, Shown, as_host, omit, recipe_chars
from foredeck.context.plan.wires import repair
from foredeck.context.rebase import first_mutable
from foredeck.context.rendering import RenderContext, referring
from foredeck.context.state.inbox import Inbox
from foredeck.context.state.objects import Objects, paste_of, user_object
from foredeck.context.state.request import PromptFrame
from foredeck.model.documents import (
    Fields,
    Provenance,
    SystemPromptDocument,
    chat_id,
    session_object_id,
    system_prompt_id,
)
from foredeck.model.messages import newest_answer, pack

if TYPE_CHECKING:  # imported where a session has tasks
    from foredeck.tasks.session import ActiveTask

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
    active: ActiveTask | None = None,
    pastes: bool = True,
) -> None:
    """Appends the new messages, from `first_new` on, to the branch. `pastes`: long user texts
    become objects."""
    objects, chat, plan = context.objects, context.chat, context.plan
    writer = ObjectWriter(objects, chat, inbox, active)
    # All of them before any is rendered: whether a result is in flight depends on what follows.
    # Those of a call that goes out as we say have joined the plan already (`Assembler.assemble`).
    for item in items[len(plan) :]:
        plan.append(item)
    # From the newest assistant message before the new ones on, so that the turn under way is whole.
    indexes = range(max(0, newest_answer(items, first_new)), len(items))
    # One question to the store for all calls, and not one for each.
    objects.workspace.look_up(call.id for index in indexes for call in items[index].calls)
    for index in with_progress(chat.log, inbox, indexes):
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
    plan, content = context.plan, result.shown
    subject = None if content is None else content.object
    if plan.is_omitted(index):
        leave_out(context, index, subject)
        return
    if result.refers_to is not None:
        _refer(context, index, result.refers_to)
        return
    if result.known and _was_folded(context, subject, index):
        reference = referring(context, index, shown=content)
        # A reference line longer than the content would save nothing.
        if recipe_chars(reference.blocks, plan.items[index]) < plan.chars[index]:
            plan.write(index, reference)
            return
    if result.known and subject is not None:
        context.sets.activate(subject)
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


def _was_folded(context: RenderContext, subject: int | None, index: int) -> bool:
    sets, in_flight = context.sets, index > context.plan.last_assistant()
    return subject in sets.pool and subject not in sets.active and not in_flight


def _refer(context: RenderContext, index: int, ordinal: int) -> None:
    """A reference is a use of the newest copy."""
    base = context.plan.newest_holder(ordinal)
    context.plan.write(index, Op("note", base=base))
    if base is not None:
        context.branch.keep_base(base)


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
        _meet_chat(objects)


def repair_list(context: RenderContext, items: Sequence[Item], start: int) -> None:
    """Decides inserts and omissions anew from `start` on."""
    plan, repairs = context.plan, repair(items, start)
    plan.repair(repairs, start)
    name_summary(context.objects, context.chat, items, start)
    covered = [MessageSpan(0, plan.compacted[0]), *plan.covered]
    for index in plan.omitted(start):
        is_covered = any(first <= index < until for first, until in covered)
        if not is_covered and index not in repairs.omitted:
            plan.write(index, as_host(plan.ops[index]))
    for index in sorted(repairs.omitted):
        leave_out(context, index, plan.ops[index].subject)


def leave_out(context: RenderContext, index: int, subject: int | None) -> None:
    """Omits a message, which then keeps nothing active."""
    context.branch.release(index, subject)
    context.plan.write(index, omit())


def put_layout_text(context: RenderContext, layout: Layout) -> None:
    """Replaces what the layout puts between the messages."""
    # What precedes sealed reasoning of the turn under way stays, since that is bound to it.
    free = first_mutable(context.plan)
    if layout.keeps_bytes:
        # What is there is another layout's, until the turn has ended and all is rendered again.
        free = len(context.plan) + 1
    plan, items = context.plan, context.plan.items
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


def _meet_chat(objects: Objects) -> None:
    # At the first call, so that the chat has the handle after the system prompt's, whatever else
    # the session meets before.
    chat = objects.workspace.head(chat_id(objects.info.id))
    if chat is not None and chat.id not in objects.index.by_object:
        objects.see_head(chat)


def _given(fields: Fields) -> tuple[Any, ...]:
    # Not the whole document: its nickname and description are the user's.
    return fields.get("text_hash"), fields.get("messages"), fields.get("tools")
