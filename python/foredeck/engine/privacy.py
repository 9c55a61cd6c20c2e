"""Private sessions: settled before the first message, for good."""

from __future__ import annotations

from foredeck.context.state.session import Session
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


def settle_privacy(session: Session, wanted: bool) -> None:
    """When a session opens: a private one is stored at once, so that everybody knows; one for which
    it is too late says so to the user."""
    if session.chat.private and session.objects.workspace.pending:
        session.objects.workspace.commit()
    if wanted and not session.chat.private:
        if _has_begun(session):
            session.inbox.user_messages.append(TOO_LATE)
        else:
            session.inbox.notify(go_private(session))


def go_private(session: Session) -> str:
    """Make a session private that has not begun. Raises `ToolError`."""
    if session.chat.private:
        return ALREADY
    if _has_begun(session):
        raise ToolError(TOO_LATE)
    document = session.objects.document()
    assert document is not None
    changed = document.model_copy(update={"private": True})
    session.objects.workspace.put(changed.seal())
    session.objects.workspace.commit()
    session.chat.private = True
    return PRIVATE


def _has_begun(session: Session) -> bool:
    return bool(session.chat.log.newest or session.chat.turns)
