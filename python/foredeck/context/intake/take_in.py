"""Taking new messages in: each joins the branch, becomes an object and is rendered at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from foredeck.context.intake.adoption import with_progress
from foredeck.context.intake.object_writer import ObjectWriter, ResultObject
from foredeck.context.intake.our_messages import leave_out
from foredeck.context.messages.items import Item
from foredeck.context.plan.ops import Keep, Shown, recipe_chars
from foredeck.context.rendering.layout import Layout, RenderContext, referring
from foredeck.context.state.chat import Chat
from foredeck.context.state.inbox import Inbox
from foredeck.context.state.objects import Objects, paste_of, user_object
from foredeck.model.messages import newest_answer

if TYPE_CHECKING:  # imported where a session has tasks
    from foredeck.tasks.session import ActiveTask

MAX_PARALLEL = 1000
"""How far behind an assistant message its results are searched for."""


class MessageIntake:
    """Appends new messages to a session's branch, and renders each as its object is written."""

    def __init__(
        self,
        objects: Objects,
        chat: Chat,
        inbox: Inbox,
        context: RenderContext,
        layout: Layout,
        *,
        active: ActiveTask | None = None,
        pastes: bool = True,
    ) -> None:
        self._objects, self._chat, self._inbox = objects, chat, inbox
        self._active = active
        self._context = context
        self._layout = layout
        self._pastes = pastes

    def take_in(self, items: Sequence[Item], first_new: int) -> None:
        """Take in a list. `first_new`: the first message that no call has held.

        Reads from the newest assistant message before that on, so that the turn under way is whole.
        """
        plan = self._chat.branch.plan
        writer = ObjectWriter(self._objects, self._chat, self._inbox, self._active)
        # All of them before any is rendered: whether a result is in flight depends on what follows.
        for item in items[len(plan) :]:
            plan.append(item)
        indexes = range(max(0, newest_answer(items, first_new)), len(items))
        self._objects.workspace.look_up(call.id for index in indexes for call in items[index].calls)
        for index in with_progress(self._chat.log, self._inbox, indexes):
            item = items[index]
            if item.kind == "assistant":
                writer.assistant(item, _results_after(items, index), new=index >= first_new)
            elif item.kind != "result":
                writer.other(item)
                if self._pastes and index >= first_new:
                    self._show_paste(index, item)
            elif index >= first_new:
                self._place(index, writer.result(item))
            else:
                writer.old_result(item)
        writer.finish()

    def _place(self, index: int, result: ResultObject) -> None:
        """Render a new result, unless it is left out, refers to another, or was folded before."""
        context = self._context
        if context.plan.is_omitted(index):
            leave_out(context, index, result.subject)
            return
        if result.refers_to is not None:
            self._refer(index, result.refers_to)
            return
        if result.known and self._was_folded(result.subject, index) and self._fold(index, result):
            return
        if result.known and result.subject is not None:
            context.sets.activate(result.subject)
        plan = context.plan
        self._layout.place(context, index, _shown(result))
        # Of `same` there is nothing to keep here: the layout keeps the message that it refers to.
        if result.subject is not None and plan.ops[index].form != "same":
            context.retention.keep(index, result.subject)

    def _show_paste(self, index: int, item: Item) -> None:
        """A long text of the user's is an object from now on, and in view; not a byte changes."""
        text, context = paste_of(item), self._context
        if text is None or context.plan.is_omitted(index):
            return
        entry = user_object(self._objects, text)
        version, digest = entry.newest.version, entry.newest.text_hash
        context.sets.activate(entry.ordinal)
        context.plan.write(index, Keep(Shown(entry.ordinal, version, digest)))
        context.retention.keep(index, entry.ordinal)

    def _was_folded(self, subject: int | None, index: int) -> bool:
        """Whether this branch has had an object and let it go, and no call waits for it now."""
        sets, in_flight = self._context.sets, index > self._context.plan.last_assistant()
        return subject in sets.pool and subject not in sets.active and not in_flight

    def _fold(self, index: int, result: ResultObject) -> bool:
        """Render a reference line in place of the content, where that is shorter."""
        context = self._context
        plan, reference = context.plan, referring(context, index, shown=_shown(result))
        if recipe_chars(reference.blocks, plan.items[index]) >= plan.chars[index]:
            return False
        plan.write(index, reference)
        return True

    def _refer(self, index: int, ordinal: int) -> None:
        """A context tool says that an object is in view: that is a use of the newest copy."""
        plan = self._context.plan
        base = plan.newest_holder(ordinal)
        plan.write(index, Keep(form="note", base=base))
        if base is not None:
            self._context.retention.use(base)


def _shown(result: ResultObject) -> Shown | None:
    if result.subject is None:
        return None
    return Shown(result.subject, result.version, result.text_hash)


def _results_after(items: Sequence[Item], index: int) -> dict[str, Item]:
    """The results that answer the assistant message at `index`, by call id."""
    found: dict[str, Item] = {}
    for following in range(index + 1, min(index + 1 + MAX_PARALLEL, len(items))):
        item = items[following]
        if item.kind == "assistant":
            break
        if item.kind == "result":
            found[item.call_id] = item
    return found
