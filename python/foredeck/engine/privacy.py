"""Private sessions, settled before the first message."""

from __future__ import annotations

from foredeck.context.state.chat import Chat
from foredeck.context.state.objects import Objects
from foredeck.context.state.request import Inbox
from foredeck.errors import ToolError

PRIVATE = (
    "This session is private: nothing said in it is kept or found outside it. What it does to "
    "files stays."
)
ALREADY = "This session is private already."
TOO_LATE = (
    "This session is not private: it has begun. Begin a private one with `pi --foredeck-private`, "
    "or with /new and then /foredeck private."
)


def settle_privacy(objects: Objects, chat: Chat, inbox: Inbox, wanted: bool) -> None:
    """Makes an opening session private if asked and not too late."""
    if chat.private and objects.workspace.pending:
        # At once: other engines on this store must not read what is said in it.
        objects.workspace.commit()
    if wanted and not chat.private:
        if _has_begun(chat):
            inbox.user_messages.append(TOO_LATE)
        else:
            inbox.notify(go_private(objects, chat))


def go_private(objects: Objects, chat: Chat) -> str:
    if chat.private:
        return ALREADY
    if _has_begun(chat):
        raise ToolError(TOO_LATE)
    document = objects.document()
    assert document is not None
    changed = document.model_copy(update={"private": True})
    objects.workspace.put(changed.seal())
    objects.workspace.commit()
    chat.private = True
    return PRIVATE


def _has_begun(chat: Chat) -> bool:
    return bool(chat.log.newest or chat.turns)
