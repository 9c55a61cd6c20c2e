"""What the host says before the chat: recorded as an object, never edited."""

from __future__ import annotations

from typing import Any

from foredeck.context.messages.items import value_chars
from foredeck.context.state.session import Session
from foredeck.model.documents import Provenance, SystemPromptDocument, system_prompt_id
from foredeck.model.messages import pack


def take_system(session: Session, messages: list[Any] | None, tools: list[Any] | None) -> int:
    """A new version of the session's system prompt object, where it differs from the last.

    What is None is as it was told before. Returns the characters that stand around the chat.
    """
    if messages is not None:
        session.prompt = messages
    if tools is not None:
        session.tools = tools
    blobs = session.workspace.blobs
    document = SystemPromptDocument(
        id=system_prompt_id(session.id),
        session_ref=session.id,
        content="\n\n".join(text for message in session.prompt if (text := message_text(message))),
        messages=pack(session.prompt, blobs),
        tools=pack(session.tools, blobs),
        provenance=Provenance(origin=session.id, generator="system"),
    ).seal()
    head = session.workspace.head(document.id)
    if head is None or head.fields.get("content_hash") != document.content_hash:
        session.workspace.put(document)
        session.system = session.see_document(document).pin
    return len(document.content or "") + value_chars(session.tools)


def message_text(message: dict[str, Any]) -> str:
    """The text of a message whose content is a string or a list of blocks."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    texts = [block.get("text") for block in content or () if isinstance(block, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))
