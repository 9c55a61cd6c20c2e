"""System prompt and tool definitions of the host: kept as an object, never edited."""

from __future__ import annotations

from typing import Any

from foredeck.context.messages.items import message_text, value_chars
from foredeck.context.state.objects import Objects
from foredeck.context.state.request import PromptFrame
from foredeck.model.documents import (
    Fields,
    Provenance,
    SystemPromptDocument,
    chat_id,
    session_object_id,
    system_prompt_id,
)
from foredeck.model.messages import pack


def take_system(
    objects: Objects, frame: PromptFrame, messages: list[Any] | None, tools: list[Any] | None
) -> None:
    """What the host puts around the chat; None for what is as before.

    The session's system prompt object gets a new version where it differs from the last. With the
    first one the session's own objects join its index.
    """
    if messages is None and tools is None and frame.version is not None:
        return
    if messages is not None:
        frame.messages = messages
    if tools is not None:
        frame.tools = tools
    blobs = objects.workspace.blobs
    document = SystemPromptDocument(
        id=system_prompt_id(objects.info.id),
        session_ref=session_object_id(objects.info.id),
        content="\n\n".join(text for message in frame.messages if (text := message_text(message))),
        messages=pack(frame.messages, blobs),
        tools=pack(frame.tools, blobs),
        provenance=Provenance(origin=objects.info.id, generator="system"),
    ).seal()
    frame.chars = len(document.content or "") + value_chars(frame.tools)
    head = objects.workspace.head(document.id)
    if head is None or _given(head.fields) != _given(document.model_dump()):
        objects.workspace.put(document)
        frame.version = objects.see_document(document).newest
        _meet_chat(objects)


def _meet_chat(objects: Objects) -> None:
    """The chat has the handle after the system prompt's, whatever else was met before a call."""
    chat = objects.workspace.head(chat_id(objects.info.id))
    if chat is not None and chat.id not in objects.index.by_object:
        objects.see_head(chat)


def _given(fields: Fields) -> tuple[Any, ...]:
    """What of a version is the host's: an older document names its session differently."""
    return fields.get("text_hash"), fields.get("messages"), fields.get("tools")
