"""The `RenderContext` of an open session."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from foredeck.context.digests import DigestSize
from foredeck.context.rendering.layout import RenderContext
from foredeck.context.state.branch import Branch
from foredeck.context.state.gauge import Gauge
from foredeck.context.state.nicknames import nicknames
from foredeck.context.state.objects import Objects
from foredeck.model.documents import FileDocument


def render_context(
    objects: Objects, branch: Branch, min_saving_chars: int, digests: DigestSize, gauge: Gauge
) -> RenderContext:
    """What a layout may look up and change of the session, for the model that will be called."""

    def content(ordinal: int) -> str | None:
        return _content(objects, ordinal)

    @cache
    def names() -> dict[str, str]:
        return nicknames(objects.store)

    def describe(ordinal: int) -> Mapping[str, Any]:
        return _describe(objects, ordinal, names())

    rendering = RenderContext(
        branch,
        content,
        describe,
        lambda ordinal: objects.index.entries[ordinal].newest.version,
        objects.info.cwd,
        min_saving_chars,
        objects.index.by_label.get,
        digests,
        gauge,
    )
    rendering.file_at = objects.index.by_label.get
    return rendering


def _content(objects: Objects, ordinal: int) -> str | None:
    """The content of a file as the session has seen it last; None for any other object."""
    entry = objects.index.entries[ordinal]
    if entry.type != "file":
        return None
    pending = objects.workspace.pending.get(entry.object)
    document = pending or objects.store.get(entry.object, FileDocument)
    return None if document is None else document.content


def described(objects: Objects, ordinal: int) -> Mapping[str, Any]:
    """What the line of an object's metadata is made of (`wording.object_line`)."""
    return _describe(objects, ordinal, nicknames(objects.store))


def _describe(objects: Objects, ordinal: int, names: Mapping[str, str]) -> Mapping[str, Any]:
    """The fields of an object's newest version, with its type, its nickname, and what the model
    calls a file."""
    entry = objects.index.entries[ordinal]
    head = objects.workspace.head(entry.object)
    if head is None:
        return {}
    path = objects.name_of(entry) if entry.type == "file" else None
    named = {"path": path, "nickname": names.get(entry.object)}
    return {**head.fields, "type": head.type, **named}
