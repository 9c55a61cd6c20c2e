"""System messages as text (hosts/pi.py)."""

from __future__ import annotations

from foredeck.context.messages.shape import sections_as_text


def test_sections_follow_the_content_in_their_own_order() -> None:
    message = {
        "role": "system",
        "content": "",
        "sections": {"preamble": "You help.", "tools": "<tools/>", "cwd": None, "a": "last"},
        "timestamp": 7,
    }
    (written,) = sections_as_text([message])
    assert written == {"role": "system", "content": "You help.\n\n<tools/>\n\nlast", "timestamp": 7}


def test_later_messages_say_what_they_change() -> None:
    _, update = sections_as_text(
        [
            {"role": "system", "content": "You help."},
            {"role": "system", "content": "Also:", "sections": {"cwd": "/b", "docs": None}},
        ]
    )
    assert update["content"] == (
        'Also:\n\nUpdated system prompt section "cwd":\n\n/b\n\n'
        'Removed system prompt section "docs".'
    )


def test_contents_of_any_shape_are_text() -> None:
    blocks = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    messages = [{"role": "system", "content": blocks}, {"role": "system"}, "odd"]
    assert [message["content"] for message in sections_as_text(messages)] == ["one\ntwo", ""]
