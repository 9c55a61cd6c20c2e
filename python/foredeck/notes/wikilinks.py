"""Wikilinks by themselves: `[[target#heading|label]]`."""

from __future__ import annotations

import re

from foredeck.notes.parsed import EMBEDS, MENTIONS, Reference

WIKILINK = re.compile(r"(?P<embed>!?)\[\[(?P<inner>[^\[\]\r\n]+)\]\]")
"""A wikilink. In a table the bar before the label is written `\\|`."""

_VERSIONED = re.compile(r"(?P<target>.*\S)\s+v(?P<version>[1-9]\d{0,8})")
_HANDLE = re.compile(r"@\d+")
_FIELD = re.compile(r"(?P<name>.*\S)\s*::(?P<field>\s*\w[\w.\[\] -]*)")


def read_wikilink(match: re.Match[str]) -> Reference | None:
    """The reference that a match of WIKILINK writes; None for one within the same document."""
    inner, _, label = match["inner"].replace("\\|", "|").partition("|")
    name, _, heading = inner.partition("#")
    target, version = _version(name.strip())
    part = None
    if named := _FIELD.fullmatch(target):
        target, part = named["name"].strip(), named["field"].strip()
    if not target:
        return None
    embed = bool(match["embed"])
    return Reference(
        target,
        relation=EMBEDS if embed else MENTIONS,
        embed=embed,
        heading=heading.strip() or None,
        label=label.strip() or None,
        version=version,
        part=part,
    )


def _version(name: str) -> tuple[str, int | None]:
    """`@12 v3` is a version; `release v3` is a name."""
    found = _VERSIONED.fullmatch(name)
    if found and _HANDLE.fullmatch(found["target"]):
        return found["target"], int(found["version"])
    return name, None
