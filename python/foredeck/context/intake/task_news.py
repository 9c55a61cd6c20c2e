"""What has become of a provisional claim, said once, with the newest message."""

from __future__ import annotations

from foredeck.context.rendering.layout import RenderContext
from foredeck.tasks.tools import SessionTasks


def attach_task_news(tasks: SessionTasks | None, context: RenderContext) -> None:
    """Put it on the newest message, which must be new in this call."""
    news = [] if tasks is None else tasks.work.news
    index = len(context.plan) - 1
    if news and context.takes_lines(index):
        context.attach(index, "\n".join(f"[foredeck] {text}" for text in news))
        news.clear()
