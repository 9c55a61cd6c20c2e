"""Facts of stack traces: what was raised, and where in the user's own code."""

from __future__ import annotations

import re
from collections.abc import Iterator

from foredeck.model.short_texts import cut

_PYTHON = re.compile(
    r"^( *)Traceback \(most recent call last\):\n((?:\1 .*\n|\1$\n?)+)\1(\S.*)", re.MULTILINE
)
_PYTHON_FRAME = re.compile(r'File "([^"\n]+)", line (\d+)')
_NODE = re.compile(
    r"^(?:Uncaught |Exception in thread \S+ )?([\w.]*(?:Error|Exception)\b.*)\n"
    r"((?: +at .*(?:\n|\Z))+)",
    re.MULTILINE,
)
_NODE_FRAME = re.compile(r"\(?(?:file://)?([^\s()]+):(\d+):\d+\)?$", re.MULTILINE)
_JAVA_FRAME = re.compile(r"at [\w.$]+\(([\w$]+\.\w+):(\d+)\)")
_GO = re.compile(r"^(panic: .*)\n(?:.*\n)*?\t(\S+):(\d+)", re.MULTILINE)
_RUST = re.compile(r"panicked at (?:'(.*)', )?([^\s:]+):(\d+):\d+:?(?:\n(.*))?")
_LIBRARY = re.compile(r"site-packages|node_modules|node:|/lib/python|<frozen|/usr/lib/|/usr/local/")
LINE_CHARS = 120


def trace_facts(text: str) -> list[str]:
    """`KeyError: 'x' at app/load.py:12` of the last trace; nothing where there is none."""
    return [
        f"{cut(what, LINE_CHARS)} at {where}" if where else cut(what, LINE_CHARS)
        for what, where in _found(text)
    ]


def _found(text: str) -> Iterator[tuple[str, str]]:
    """What was raised and where, of at most one trace."""
    if "Traceback (most" in text and (last := _last(_PYTHON, text)):
        yield last[3], _own(_PYTHON_FRAME.findall(last[2])[::-1])
    elif "\n    at " in text or "\n\tat " in text or "\n   at " in text:
        last = _last(_NODE, text.replace("\n\tat ", "\n    at "))
        if last:
            frames = _NODE_FRAME.findall(last[2]) or _JAVA_FRAME.findall(last[2])
            yield last[1], _own(frames)
    elif "panic: " in text and (last := _last(_GO, text)):
        yield last[1], f"{last[2]}:{last[3]}"
    elif "panicked at " in text and (last := _last(_RUST, text)):
        yield f"panic: {last[1] or last[4] or ''}".rstrip(), f"{last[2]}:{last[3]}"


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return next(reversed(list(pattern.finditer(text))), None)


def _own(frames: list[tuple[str, str]]) -> str:
    """The first frame that is no library's, else the first."""
    own = (frame for frame in frames if not _LIBRARY.search(frame[0]))
    return ":".join(next(own, frames[0])) if frames else ""
