from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from foredeck.errors import ToolError
from foredeck.model.documents import ENVELOPE, HASHES, Document
from foredeck.model.figures import some_of
from foredeck.model.kinds import kind_of
from foredeck.model.messages import unpack
from foredeck.model.quoting import one_line
from foredeck.notes.parsed import MARKDOWN, ParsedNote

SHOWN = 12
_STEP = re.compile(r"[^.\[\]]+")
_DERIVED = ("frontmatter", "tags", "headings")
"""What Markdown files have beside stored fields."""

_BLOCK = re.compile(r"(?:^|[ \t])\^(?P<id>[A-Za-z0-9-]+)[ \t]*\r?$", re.MULTILINE)
_ANCHOR = re.compile(r"""<[^<>\n]*\b(?:id|name)=["'](?P<id>[^"'\n]+)["']|\{#(?P<set>[\w-]+)\}""")
_NO_WORD = re.compile(r"[\W_]+")
_EDGE = re.compile(r"^(?:[ \t]*|#{1,6}[ \t].*|-{3,})(?:\r\n?|\n)", re.MULTILINE)
_LINE = re.compile(r"\r\n?|\n")


def section_place(text: str, heading: str, name: str) -> tuple[int, int]:
    """The part under a heading or block. Raises `ToolError` that lists the headings."""
    parsed = _parse(text)
    if parsed.is_cut:
        raise ToolError(f"{name}: {parsed.problems[-1]}. Ask for `{name} chars 1-5000`.")
    place = section_of(text, parsed, heading)
    if place is None:
        names = [f"#{one_line(h.text)}" for h in parsed.headings]
        has = f"it has {some_of(names, SHOWN) or 'no headings'}"
        raise ToolError(f"{name} has no heading {heading!r}: {has}.")
    return place


def section_of(text: str, parsed: ParsedNote, heading: str) -> tuple[int, int] | None:
    """A heading's part ends before the next of its level or above; a block (`^id`) is a paragraph
    or list line."""
    key = anchor_key(heading)
    if key.startswith("^"):
        match = next((m for m in _BLOCK.finditer(text) if m["id"] == key[1:]), None)
        return None if match is None else _block_before(text, match.end())
    for position, candidate in enumerate(parsed.headings):
        if anchor_key(_bare(candidate.text)) == key:
            after = parsed.headings[position + 1 :]
            end = next((h.start for h in after if h.level <= candidate.level), len(text))
            return candidate.start, end
    return None


def anchors_of(text: str, parsed: ParsedNote) -> set[str]:
    """Keys of everything in a text that links can name."""
    keys: set[str] = set()
    for heading in parsed.headings:
        key, number = anchor_key(_bare(heading.text)), 0
        while (name := f"{key} {number}" if number else key) in keys:
            number += 1  # of headings alike, web pages number the second and those after it
        keys.add(name)
    keys.update("^" + match["id"] for match in _BLOCK.finditer(text))
    keys.update(anchor_key(match["id"] or match["set"]) for match in _ANCHOR.finditer(text))
    return keys


def anchor_key(heading: str) -> str:
    """Words in any case, also in web form (`low-water`); of `Sea#Low water` the innermost."""
    name = heading.rpartition("#")[2].strip()
    if name.startswith("^"):
        return name
    return _NO_WORD.sub(" ", name.casefold()).strip() or name


def field_text(
    document: Document | None,
    path: str,
    name: str,
    blob: Callable[[str], bytes],
    *,
    may_be_empty: bool = False,
) -> str:
    """A field or part (`args.path`): text as it is, else JSON.

    Raises `ToolError` that lists the fields.
    """
    fields = {} if document is None else fields_of(document)
    value: Any = fields
    for step in _STEP.findall(path):
        value = _within(value, step)
        if isinstance(value, dict) and len(value) == 1:  # a long text, kept apart
            value = unpack(value, blob)
    first = path.partition(".")[0].partition("[")[0]
    # Of objects of its type, though this one may hold nothing in it.
    names = {*kind_of(document.type).model_fields, *_DERIVED} if document is not None else ()
    if value is None and may_be_empty and first == path and first in names:
        return ""
    if value is None or value is fields:
        field_names = ", ".join(map(one_line, fields))
        raise ToolError(f"{name} has no field {path!r}: it has {field_names}.")
    value = unpack(value, blob)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def fields_of(document: Document) -> dict[str, Any]:
    """An object's non-empty fields, with those of its Markdown."""
    hidden = ENVELOPE | HASHES
    body = document.model_dump()
    fields = {k: v for k, v in body.items() if k not in hidden and v not in (None, "", [], {})}
    if document.content is not None and body.get("file_type") in MARKDOWN:
        parsed = _parse(document.content)
        headings = [f"{'#' * h.level} {h.text}" for h in parsed.headings]
        tags = list(dict.fromkeys(tag.name for tag in parsed.tags))
        derived = zip(_DERIVED, (parsed.properties, tags, headings), strict=True)
        fields |= {key: value for key, value in derived if value}
    return fields


def _parse(text: str) -> ParsedNote:
    # Loads with the first Markdown file: a command that prints another object does without.
    from foredeck.notes.markdown import parse_note

    return parse_note(text)


def _within(value: Any, step: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(step.strip())
    if isinstance(value, list) and step.strip().isdecimal() and int(step) < len(value):
        return value[int(step)]
    return None


def _block_before(text: str, end: int) -> tuple[int, int]:
    line = max((m.end() for m in _LINE.finditer(text, 0, end)), default=0)
    if text[line:end].lstrip()[:1] in ("-", "*", "+"):
        return line, end
    return max((m.end() for m in _EDGE.finditer(text, 0, line)), default=0), end


def _bare(heading: str) -> str:
    heading = re.sub(r"\{#[\w-]+\}\s*$", "", heading)
    heading = re.sub(r"!?\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]", r"\1", heading)
    return re.sub(r"!?\[([^\[\]]*)\]\([^()]*\)", r"\1", heading).replace("#", " ")
