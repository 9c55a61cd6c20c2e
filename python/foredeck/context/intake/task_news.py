"""What has become of a provisional claim, said once, with the newest message."""

from __future__ import annotations

from foredeck.context.rendering.layout import RenderContext
from foredeck.context.state.session import Session


def attach_task_news(session: Session, context: RenderContext) -> None:
    """Put it on the newest message, which must be new in this call."""
    news = [] if session.tasks is None else session.tasks.work.news
    index = len(context.plan) - 1
    if news and context.takes_lines(index):
        context.attach(index, "\n".join(f"[foredeck] {text}" for text in news))
        news.clear()
