"""Parts of an object by name: what is under a heading, or in one of its fields."""

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
"""What a Markdown file has beside its stored fields."""

_BLOCK = re.compile(r"(?:^|[ \t])\^(?P<id>[A-Za-z0-9-]+)[ \t]*\r?$", re.MULTILINE)
_ANCHOR = re.compile(r"""<[^<>\n]*\b(?:id|name)=["'](?P<id>[^"'\n]+)["']|\{#(?P<set>[\w-]+)\}""")
_NO_WORD = re.compile(r"[\W_]+")
_EDGE = re.compile(r"^(?:[ \t]*|#{1,6}[ \t].*|-{3,})(?:\r\n?|\n)", re.MULTILINE)
"""A line that ends a paragraph before it: blank, a heading, the end of frontmatter."""
_LINE = re.compile(r"\r\n?|\n")


def section_place(text: str, heading: str, name: str) -> tuple[int, int]:
    """Where the part of a Markdown text is that a heading or a block names.

    `name`: the object's handle.

    Raises `ToolError` that lists the headings where there is none like it.
    """
    parsed = _parse(text)
    if parsed.is_cut:
        raise ToolError(f"{name}: {parsed.problems[-1]}. Ask for `{name} chars 1-5000`.")
    place = section_of(text, parsed, heading)
    if place is None:
        found = [f"#{one_line(h.text)}" for h in parsed.headings]
        has = f"it has {some_of(found, SHOWN) or 'no headings'}"
        raise ToolError(f"{name} has no heading {heading!r}: {has}.")
    return place


def section_of(text: str, parsed: ParsedNote, heading: str) -> tuple[int, int] | None:
    """Where the part of a text is that a link names; None where there is none.

    A heading's part ends before the next one that is not below it. A block (`^id`) is the
    paragraph that ends with its name, or one line of a list.
    """
    key = anchor_key(heading)
    if key.startswith("^"):
        match = next((m for m in _BLOCK.finditer(text) if m["id"] == key[1:]), None)
        return None if match is None else _block_before(text, match.end())
    for position, found in enumerate(parsed.headings):
        if anchor_key(_bare(found.text)) == key:
            after = parsed.headings[position + 1 :]
            end = next((h.start for h in after if h.level <= found.level), len(text))
            return found.start, end
    return None


def anchors_of(text: str, parsed: ParsedNote) -> set[str]:
    """The keys of everything in a text that a link can name."""
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
    """What a heading is compared by: its words in any case, as links to it write them, also in
    the form that web pages give it (`low-water`). Of `Sea#Low water` the innermost counts."""
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
    """A field, or what lies in it (`args.path`, `file_refs[0]`): text as it is, the rest as JSON.

    `may_be_empty`: a field that objects of its type have gives an empty text where it holds
    nothing.

    Raises `ToolError` that lists the fields where there is none of that name.
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
        known = ", ".join(map(one_line, fields))
        raise ToolError(f"{name} has no field {path!r}: it has {known}.")
    value = unpack(value, blob)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def fields_of(document: Document) -> dict[str, Any]:
    """What an object says of itself: its fields that hold something, and those of its Markdown."""
    hidden = ENVELOPE | HASHES
    body = document.model_dump()
    fields = {k: v for k, v in body.items() if k not in hidden and v not in (None, "", [], {})}
    if document.content is not None and body.get("file_type") in MARKDOWN:
        parsed = _parse(document.content)
        headings = [f"{'#' * h.level} {h.text}" for h in parsed.headings]
        tags = list(dict.fromkeys(tag.name for tag in parsed.tags))
        found = zip(_DERIVED, (parsed.properties, tags, headings), strict=True)
        fields |= {key: value for key, value in found if value}
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
    """A heading without a name that it is given in braces, and links as they are read."""
    heading = re.sub(r"\{#[\w-]+\}\s*$", "", heading)
    heading = re.sub(r"!?\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]", r"\1", heading)
    return re.sub(r"!?\[([^\[\]]*)\]\([^()]*\)", r"\1", heading).replace("#", " ")
