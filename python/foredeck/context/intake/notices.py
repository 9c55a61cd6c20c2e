"""Telling the model, once, that a file it sees has changed under it (design 2 section 2)."""

from __future__ import annotations

from dataclasses import replace

from foredeck.context.messages.items import text_block
from foredeck.context.messages.parts import keep_all
from foredeck.context.rendering.layout import Scene
from foredeck.context.state.session import Session
from foredeck.context.wording import changed_on_disk, deleted_on_disk
from foredeck.model.documents import SessionDocument, session_object_id


def attach_notices(session: Session, scene: Scene) -> None:
    """Put what is pending on the newest message, as a block of its own, and forget it.

    On a result it stands first: what follows a line of ours may be anybody's text and pretend, what
    comes first cannot. The user's text stays first. The newest message must be new in this call:
    what was sent is never touched.
    """
    conversation = scene.conversation
    index = len(conversation) - 1
    item = conversation.items[index]
    if not session.notices or item.kind not in ("user", "result") or index in session.branch.drops:
        return
    lines = [line for ordinal in sorted(session.notices) if (line := _line(session, ordinal))]
    session.notices.clear()
    keep_untold(session)
    if not lines:
        return
    part = conversation.parts[index]
    own = part.blocks if part.blocks is not None else keep_all(item)
    notice = text_block("\n".join(lines))
    blocks = [*own, notice] if item.kind == "user" else [notice, *own]
    scene.render(index, replace(part, blocks=blocks))


def _line(session: Session, ordinal: int) -> str | None:
    """The notice for one file, None where no stale copy of it can be seen."""
    shown = session.branch.conversation.newest_holder(ordinal)
    entry = session.index.entries.get(ordinal)
    if shown is None or entry is None:
        return None
    if session.branch.conversation.parts[shown].version == entry.pin.version:
        return None
    if session.notices[ordinal] == "deleted":
        return deleted_on_disk(ordinal, session.name_of(entry))
    return changed_on_disk(ordinal, session.name_of(entry))


def keep_untold(session: Session) -> None:
    """Write what the model has still to be told with the session, so that a restart keeps it."""
    id = session_object_id(session.id)
    document = session.workspace.pending.get(id) or session.store.get(id, SessionDocument)
    if not isinstance(document, SessionDocument):
        return
    document.untold = {str(n): what for n, what in sorted(session.notices.items())} or None
    session.workspace.put(document.seal())
