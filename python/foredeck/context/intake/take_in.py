"""Taking new messages in: each joins the branch, becomes an object and is rendered at once."""

from __future__ import annotations

from collections.abc import Sequence

from foredeck.context.intake.adoption import with_progress
from foredeck.context.intake.object_writer import ObjectWriter, ResultObject
from foredeck.context.intake.our_messages import leave_out
from foredeck.context.messages.items import Item
from foredeck.context.messages.parts import Part, recipe_chars
from foredeck.context.rendering.layout import Layout, NewResult, RenderContext, reference_part
from foredeck.context.state.pastes import paste_of, user_object
from foredeck.context.state.session import Session

MAX_PARALLEL = 1000
"""How far behind an assistant message its results are looked for."""


class MessageIntake:
    """Appends new messages to a session's branch, and renders each as its object is written."""

    def __init__(
        self, session: Session, context: RenderContext, layout: Layout, *, pastes: bool = True
    ) -> None:
        self._session = session
        self._context = context
        self._layout = layout
        self._pastes = pastes

    def take_in(self, items: Sequence[Item], first_new: int) -> None:
        """Take in a list. `first_new`: the first message that no call has held.

        Reads from the newest assistant message before that on, so that the turn under way is whole.
        """
        session, conversation = self._session, self._session.branch.conversation
        objects = ObjectWriter(session)
        # All of them before any is rendered: whether a result is in flight depends on what follows.
        for item in items[len(conversation) :]:
            conversation.append(item)
        indexes = range(_turn_start(items, first_new), len(items))
        session.workspace.look_up(call.id for index in indexes for call in items[index].calls)
        for index in with_progress(session, indexes):
            item = items[index]
            if item.kind == "assistant":
                objects.assistant(item, _results_after(items, index), new=index >= first_new)
            elif item.kind != "result":
                objects.other(item)
                if self._pastes and index >= first_new:
                    self._show_paste(index, item)
            elif index >= first_new:
                self._place(index, objects.result(item))
            else:
                objects.old_result(item)
        objects.finish()

    def _place(self, index: int, result: ResultObject) -> None:
        """Render a new result, unless it is left out, refers to another, or was folded before."""
        context = self._context
        if index in context.branch.edits.drops:
            leave_out(context, index, result.subject)
            return
        if result.refers_to is not None:
            self._refer(index, result.refers_to)
            return
        if result.known and self._was_folded(result.subject, index) and self._fold(index, result):
            return
        if result.known and result.subject is not None:
            context.sets.activate(result.subject)
        self._layout.place(
            context, NewResult(index, result.subject, result.version, result.text_hash)
        )
        conversation = context.conversation
        if result.subject is not None and conversation.parts[index].form != "same":
            conversation.want(index, result.subject)

    def _show_paste(self, index: int, item: Item) -> None:
        """A long text of the user's is an object from now on, and in view; not a byte changes."""
        text, context = paste_of(item), self._context
        if text is None or index in context.branch.edits.drops:
            return
        entry = user_object(self._session, text)
        version, digest = entry.newest.version, entry.newest.text_hash
        context.sets.activate(entry.ordinal)
        context.render(index, Part("host", None, entry.ordinal, version, None, digest))
        context.conversation.want(index, entry.ordinal)

    def _was_folded(self, subject: int | None, index: int) -> bool:
        """Whether this branch has had an object and let it go, and nobody waits for it now."""
        sets, in_flight = self._context.sets, index > self._context.conversation.last_assistant()
        return subject in sets.pool and subject not in sets.active and not in_flight

    def _fold(self, index: int, result: ResultObject) -> bool:
        """Render a reference line in place of the content, where that is shorter."""
        context = self._context
        part = context.conversation.parts[index]
        part.subject, part.version = result.subject, result.version
        part.text_hash = result.text_hash
        reference = reference_part(context, index)
        chars = recipe_chars(reference.blocks, context.conversation.items[index])
        if chars >= part.chars:
            return False
        context.render(index, reference)
        return True

    def _refer(self, index: int, ordinal: int) -> None:
        """A context tool says that an object is in view: that is a use of the newest copy."""
        conversation = self._context.conversation
        base = conversation.newest_holder(ordinal)
        self._context.render(index, Part("note", base=base))
        if base is not None:
            conversation.refer(base, index)


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


def _turn_start(items: Sequence[Item], first_new: int) -> int:
    """The newest assistant message before `first_new`; 0 where there is none."""
    for index in range(first_new - 1, -1, -1):
        if items[index].kind == "assistant":
            return index
    return 0
