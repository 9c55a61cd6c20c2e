"""The `RenderContext` of an open session."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from foredeck.context.digests import DigestSize
from foredeck.context.rendering.layout import RenderContext
from foredeck.context.state.gauge import Gauge
from foredeck.context.state.nicknames import nicknames
from foredeck.context.state.session import Session
from foredeck.model.documents import FileDocument


def render_context(
    session: Session, min_saving_chars: int, digests: DigestSize, gauge: Gauge
) -> RenderContext:
    """What a layout may look up and change of the session, for the model that will be called."""

    def content(ordinal: int) -> str | None:
        return _content(session, ordinal)

    @cache
    def names() -> dict[str, str]:
        return nicknames(session.objects.store)

    def describe(ordinal: int) -> Mapping[str, Any]:
        return _describe(session, ordinal, names())

    rendering = RenderContext(
        session.chat.branch,
        content,
        describe,
        lambda ordinal: session.objects.index.entries[ordinal].newest.version,
        session.info.cwd,
        min_saving_chars,
        session.objects.index.by_label.get,
        digests,
        gauge,
    )
    rendering.file_at = session.objects.index.by_label.get
    return rendering


def _content(session: Session, ordinal: int) -> str | None:
    """The content of a file as the session has seen it last; None for any other object."""
    entry = session.objects.index.entries[ordinal]
    if entry.type != "file":
        return None
    pending = session.objects.workspace.pending.get(entry.object)
    document = pending or session.objects.store.get(entry.object, FileDocument)
    return None if document is None else document.content


def described(session: Session, ordinal: int) -> Mapping[str, Any]:
    """What the line of an object's metadata is made of (`wording.object_line`)."""
    return _describe(session, ordinal, nicknames(session.objects.store))


def _describe(session: Session, ordinal: int, names: Mapping[str, str]) -> Mapping[str, Any]:
    """The fields of an object's newest version, with its type, its nickname, and what the model
    calls a file."""
    entry = session.objects.index.entries[ordinal]
    head = session.objects.workspace.head(entry.object)
    if head is None:
        return {}
    path = session.objects.name_of(entry) if entry.type == "file" else None
    named = {"path": path, "nickname": names.get(entry.object)}
    return {**head.fields, "type": head.type, **named}
