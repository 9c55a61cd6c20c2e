"""Quotes text of others among lines of foredeck's.

A line of foredeck's begins at the margin; what others wrote is inside such a line, or moved in by a
space.
"""

from __future__ import annotations

import json
import re
from typing import Any

_BREAK = re.compile("\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
"""Where some reader ends a line."""

_HIDDEN_CHARS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0e\ufeff\uffa0"
    "\ufff0-\ufffb\U000e0000-\U000e0fff"
)
_HIDDEN = re.compile(f"[{_HIDDEN_CHARS}]")
"""Controls, half characters, direction marks, joiners, tags; not tab, line feed and emoji
selectors."""
_UNNAMED = re.compile(f"[\t\n{_HIDDEN_CHARS}]")

_TAG = re.compile(r"[\[\uff3b\u3010\u27e6](?=\s*(?:user-stated|derived|foredeck)\b)", re.IGNORECASE)
_WORD = re.compile(r"\w(?:[\w./:-]*\w)?")

_OURS = re.compile(r"^(?:@\d+\b|\[foredeck\]|Unchanged: |<activate \"?@\d+\b)", re.MULTILINE)
_REFERENCE = re.compile(r"@\d+ (?:folded: |tool=\S+ status=(?:ok|fail)$)")
_RUN = re.compile(r"\[foredeck\] (?:\d+ calls?, folded:|Turn \d+, folded[.:])")


def name(text: str) -> str:
    return _json(text) if _UNNAMED.search(text) or _TAG.search(text) else text


def word(text: str) -> str:
    return text if _WORD.fullmatch(text) and text.isprintable() else _json(text)


def quoted(value: Any) -> str:
    """A text, or another value, as JSON."""
    return _json(value)


def one_line(text: str) -> str:
    """Prose within a line of ours; what cannot be seen is left out."""
    if not text.isprintable():
        text = " ".join(_HIDDEN.sub("", _BREAK.sub(" ", text)).split())
    return _TAG.sub("(", text)


def block(text: str) -> str:
    """Prose over lines of its own, each moved in by a space; what cannot be seen is left out."""
    lines = (_HIDDEN.sub("", line) for line in _BREAK.split(text))
    return "\n".join(f" {_TAG.sub('(', line)}" if line else "" for line in lines)


def spelled(text: str) -> str:
    """JSON with invisible characters and terminal controls escaped."""
    return _HIDDEN.sub(_escape, text)


def printable(text: str) -> str:
    """Escapes controls and invisible characters for a terminal, except line feeds and tabs."""
    return text if text.isprintable() else _HIDDEN.sub(_visible, text)


def looks_like_ours(text: str) -> bool:
    """Whether a line of a text could be taken for one of ours."""
    return _OURS.search(text) is not None


def is_reference(text: str) -> bool:
    """Whether a text is a reference line, with or without digest."""
    return _REFERENCE.match(text) is not None


def is_run(text: str) -> bool:
    """Whether a text is that of a run of folded calls."""
    return _RUN.match(text) is not None


def _json(value: Any) -> str:
    spelled = _UNNAMED.sub(_escape, json.dumps(value, ensure_ascii=False))
    return _TAG.sub(lambda match: f"\\u{ord(match[0]):04x}", spelled)


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else _escape(match)


def _escape(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1]
