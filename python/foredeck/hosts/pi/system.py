"""Pi's system messages as the model reads them.

Pi >= 0.87 keeps the prompt in named sections whose order counts: the leading message declares
them, later ones replace or remove them. An object's order does not survive in the store, so the
sections are written out as text before anything is kept.
"""

from __future__ import annotations

from typing import Any

from foredeck.context.intake.system import message_text

Message = dict[str, Any]


def sections_as_text(messages: list[Any]) -> list[Message]:
    """The messages with `content` as the text that Pi sends, and without `sections`."""
    found = [message for message in messages if isinstance(message, dict)]
    return [_with_text(message, leading=n == 0) for n, message in enumerate(found)]


def _with_text(message: Message, *, leading: bool) -> Message:
    sections = message.get("sections")
    named = sections.items() if isinstance(sections, dict) else ()
    texts = [message_text(message)]
    texts += [_section(name, text, leading=leading) for name, text in named]
    rest = {name: value for name, value in message.items() if name != "sections"}
    return {**rest, "content": "\n\n".join(text for text in texts if text)}


def _section(name: str, text: Any, *, leading: bool) -> str:
    if leading:
        return text if isinstance(text, str) else ""
    if text is None:
        return f'Removed system prompt section "{name}".'
    return f'Updated system prompt section "{name}":\n\n{text}'
