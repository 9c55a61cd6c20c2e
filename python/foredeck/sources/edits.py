"""What an `edit` call makes of a text, by the rules of the host's own tool.

Each old text must occur once in the file as it was before the call; if one of them is not there
letter by letter, typographic variants and trailing white space are let pass, and only the lines
that are touched take on the plain form.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

BOM = "\ufeff"

_TRAILING = "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00a0\u202f\u205f\u3000", " "),
        **dict.fromkeys(map(chr, range(0x2002, 0x200B)), " "),
    }
)
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


class Edit(NamedTuple):
    """One replacement."""

    old: str
    new: str


class _Match(NamedTuple):
    start: int
    end: int
    new: str


def edits_of(arguments: Mapping[str, Any]) -> list[Edit]:
    """The replacements that an `edit` call asks for, in any of the forms that models send."""
    given = arguments.get("edits")
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            given = None
    items = list(given) if isinstance(given, list) else [given]
    items.append(arguments)
    return [
        Edit(item["oldText"], item["newText"])
        for item in items
        if isinstance(item, Mapping)
        and isinstance(item.get("oldText"), str)
        and isinstance(item.get("newText"), str)
    ]


def written_texts(arguments: Mapping[str, Any]) -> list[str]:
    """What a call of `write` or `edit` puts into its file, text by text; deletions put nothing."""
    content = arguments.get("content")
    texts = [content] if isinstance(content, str) else []
    texts += [edit.new for edit in edits_of(arguments)]
    return [text for text in texts if text.strip()]


def apply_edits(text: str, edits: Sequence[Edit]) -> str | None:
    """The text after these replacements, None where the outcome is not certain.

    Not certain: an old text that is not there or is there more than once, replacements that
    overlap, and a file whose line endings are mixed (versions of the host differ on those).
    """
    bom, body = (BOM, text[1:]) if text.startswith(BOM) else ("", text)
    crlf = "\r" in body
    if crlf and body.replace("\r\n", "").count("\r") + body.replace("\r\n", "").count("\n"):
        return None
    plain = [Edit(_unix(old), _unix(new)) for old, new in edits]
    if not plain or any(not edit.old for edit in plain):
        return None
    result = _replace(_unix(body), plain)
    if result is None:
        return None
    return bom + (result.replace("\n", "\r\n") if crlf else result)


def _replace(text: str, edits: Sequence[Edit]) -> str | None:
    if all(edit.old in text for edit in edits):
        matches = _matches(text, edits)
        return None if matches is None else _splice(text, matches)
    base = _fuzzy(text)
    matches = _matches(base, [Edit(_fuzzy_unless_exact(base, e.old), e.new) for e in edits])
    return None if matches is None else _splice_lines(text, base, matches)


def _matches(text: str, edits: Sequence[Edit]) -> list[_Match] | None:
    """Where the old texts are, in order; None unless each is there once, apart from the others."""
    found: list[_Match] = []
    for old, new in edits:
        if not old or text.count(old) != 1:
            return None
        start = text.index(old)
        found.append(_Match(start, start + len(old), new))
    found.sort()
    apart = all(a.end <= b.start for a, b in pairwise(found))
    return found if apart else None


def _splice(text: str, matches: Sequence[_Match], offset: int = 0) -> str:
    for start, end, new in reversed(matches):
        text = text[: start - offset] + new + text[end - offset :]
    return text


def _splice_lines(text: str, base: str, matches: Sequence[_Match]) -> str | None:
    """Replace in `base`, line by line; lines that no match touches stay as `text` has them."""
    lines, spans = _LINE.findall(text), [m.span() for m in _LINE.finditer(base)]
    if len(lines) != len(spans):
        return None
    parts: list[str] = []
    done = 0
    for first, last, group in _touched_lines(spans, matches):
        start, end = spans[first][0], spans[last][1]
        parts += lines[done:first]
        parts.append(_splice(base[start:end], group, start))
        done = last + 1
    return "".join(parts + lines[done:])


def _touched_lines(
    spans: Sequence[tuple[int, int]], matches: Sequence[_Match]
) -> list[tuple[int, int, list[_Match]]]:
    """`(first line, last line, matches)` for each run of lines that matches touch together."""
    groups: list[tuple[int, int, list[_Match]]] = []
    for match in matches:
        first = next(i for i, (_, end) in enumerate(spans) if match.start < end)
        last = next(i for i, (_, end) in enumerate(spans) if match.end <= end)
        if groups and first <= groups[-1][1]:
            start, end, together = groups[-1]
            groups[-1] = (start, max(end, last), [*together, match])
        else:
            groups.append((first, last, [match]))
    return groups


def _fuzzy_unless_exact(base: str, old: str) -> str:
    return old if old in base else _fuzzy(old)


def _fuzzy(text: str) -> str:
    lines = unicodedata.normalize("NFKC", text).split("\n")
    return "\n".join(line.rstrip(_TRAILING) for line in lines).translate(_PLAIN)


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
