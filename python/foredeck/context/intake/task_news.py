"""What has become of a provisional claim, said once, with the newest message."""

from __future__ import annotations

from dataclasses import replace

from foredeck.context.messages.items import text_block
from foredeck.context.messages.parts import keep_all
from foredeck.context.rendering.layout import RenderContext
from foredeck.context.state.session import Session


def attach_task_news(session: Session, context: RenderContext) -> None:
    """Put it on the newest message, which must be new in this call, as a block of its own; by the
    rule of notices (`attach_notices`) first on a result, and last on what the user said."""
    news = [] if session.tasks is None else session.tasks.work.news
    index = len(context.conversation) - 1
    item = context.conversation.items[index]
    if not news or item.kind not in ("user", "result") or index in session.branch.edits.drops:
        return
    part = context.conversation.parts[index]
    own = part.blocks if part.blocks is not None else keep_all(item)
    line = text_block("\n".join(f"[foredeck] {text}" for text in news))
    news.clear()
    blocks = [*own, line] if item.kind == "user" else [line, *own]
    context.render(index, replace(part, blocks=blocks))
