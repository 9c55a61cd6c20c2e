"""A page in Markdown: its sections, and what of it says anything beyond its template."""

from __future__ import annotations

import re
from dataclasses import dataclass

TEMPLATE = """\
# Project Context

## Tech Stack
- Language:
- Framework:
- Database:
- Other key dependencies:

## Project Structure
- Main directory:
- Source directory:
- Test directory:

## User Preferences
- Testing framework:
- Code style:
- Other preferences:

## Current Work
- Active feature:
- Blocker:
- Last completed:
"""

_HEADING = re.compile(r"##[ \t]+(\S.*?)[ \t]*#*[ \t]*")
_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class PageSection:
    """A part of a page under a heading of the second level; the first part has none."""

    name: str
    body: str


def sections_of(page: str) -> list[PageSection]:
    """The parts of a page in their order. A heading in a code block is none."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    fence = ""
    for line in page.splitlines():
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence):
            fence = ""
        heading = None if fence else _HEADING.fullmatch(line)
        if heading:
            parts.append((heading[1], []))
        else:
            parts[-1][1].append(line)
    return [PageSection(name, "\n".join(lines).strip("\n")) for name, lines in parts]


def page_of(sections: list[PageSection]) -> str:
    """The page that has these parts."""
    texts = [
        "\n".join(filter(None, (f"## {part.name}" if part.name else "", part.body)))
        for part in sections
    ]
    return "\n\n".join(filter(None, texts)) + "\n"


def put_section(page: str, name: str, body: str, template: str) -> str:
    """The page with one section replaced; one that is not there comes last.

    An empty body puts back what the template has there, or removes the section.
    """
    body = _body_of(name, body).strip("\n")
    if not body.strip():
        body = next((part.body for part in sections_of(template) if _same(part.name, name)), "")
    found = sections_of(page)
    replaced = [PageSection(p.name, body) if _same(p.name, name) else p for p in found]
    if not any(_same(part.name, name) for part in found):
        replaced.append(PageSection(" ".join(name.split()), body))
    return page_of([p for p in replaced if p.body.strip() or not _same(p.name, name)])


def _body_of(name: str, text: str) -> str:
    """The text of a section without its own heading, which models like to repeat."""
    first, _, rest = text.lstrip("\n").partition("\n")
    heading = _HEADING.fullmatch(first)
    return rest if heading and _same(heading[1], name) else text


def _same(one: str, other: str) -> bool:
    return bool(one) and " ".join(one.split()).casefold() == " ".join(other.split()).casefold()


def shown(page: str, template: str) -> str:
    """What of a page says anything: without the template's lines that are not filled in, and
    without sections that are empty then."""
    unfilled = {line.strip() for line in template.splitlines() if line.strip()}
    texts = []
    for part in sections_of(page):
        lines = [line for line in part.body.splitlines() if line.strip() not in unfilled]
        body = "\n".join(line.rstrip() for line in lines if line.strip())
        if body:
            texts.append(f"## {part.name}\n{body}" if part.name else body)
    return "\n".join(texts)
