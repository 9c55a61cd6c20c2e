"""The parts of a Markdown text that a link can name: what is under a heading, and blocks."""

from __future__ import annotations

import re

from foredeck.notes.parsed import ParsedNote

_BLOCK = re.compile(r"(?:^|[ \t])\^(?P<id>[A-Za-z0-9-]+)[ \t]*\r?$", re.MULTILINE)
_ANCHOR = re.compile(r"""<[^<>\n]*\b(?:id|name)=["'](?P<id>[^"'\n]+)["']|\{#(?P<set>[\w-]+)\}""")
_NO_WORD = re.compile(r"[\W_]+")
_EDGE = re.compile(r"^(?:[ \t]*|#{1,6}[ \t].*|-{3,})(?:\r\n?|\n)", re.MULTILINE)
"""A line that ends a paragraph before it: blank, a heading, the end of frontmatter."""
_LINE = re.compile(r"\r\n?|\n")


def anchor_key(heading: str) -> str:
    """What a heading is compared by: its words in any case, as links to it write them, also in
    the form that web pages give it (`low-water`). Of `Sea#Low water` the innermost counts."""
    name = heading.rpartition("#")[2].strip()
    if name.startswith("^"):
        return name
    return _NO_WORD.sub(" ", name.casefold()).strip() or name


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
