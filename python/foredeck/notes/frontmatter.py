"""YAML frontmatter: the properties of a note, read so that no text can do harm.

Only plain values are made. What is long, deep or uses aliases is passed over with a word on why.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from foredeck.notes.parsed import WIKILINK, ParsedNote, Tag, read_wikilink, words_of

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_CHARS = 32 * 1024
MAX_DEPTH = 20
_BLOCK = re.compile(
    r"\ufeff?---[ \t]*(?:\r\n?|\n)(?P<yaml>.*?)^---[ \t]*(?:\r\n?|\n|\Z)", re.DOTALL | re.MULTILINE
)
_TAG_PROPERTIES = ("tags", "tag")
_SEPARATORS = re.compile(r"[\s,]+")


class Unusable(ValueError):
    """Frontmatter that is not read, and why."""


def read_frontmatter(text: str, into: ParsedNote) -> int:
    """Take in the properties at the beginning of `text`; gives where the text after them begins."""
    block = _BLOCK.match(text) if text.startswith(("---", "\ufeff---")) else None
    if block is None:
        return 0
    source, base = block["yaml"], block.start("yaml")
    try:
        entries, properties = _load(source)
    except Unusable as error:
        into.problems.append(f"the frontmatter is passed over: {error}")
        return block.end()
    into.properties = properties
    for key, start, end in entries:
        _take_references(source, key, start, end, base, into)
    _take_tags(source, entries, base, into)
    return block.end()


def _load(source: str) -> tuple[list[tuple[str, int, int]], dict[str, Any]]:
    """Each property with the range of its value, and all values. Raises `Unusable`."""
    # Loads with the first note that has properties.
    import yaml

    if len(source) > MAX_CHARS:
        raise Unusable(f"it has {len(source):,} characters, {MAX_CHARS:,} are read")
    # libyaml where PyYAML was built with it: ten times as fast.
    loader_class: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        # Before any value is made of it.
        _check_events(yaml.parse(source, Loader=loader_class))
        loader = loader_class(source)
        try:
            node = loader.get_single_node()
            value = None if node is None else loader.construct_document(node)
        finally:
            loader.dispose()
    except Unusable:
        raise
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, AttributeError) as error:
        raise Unusable(f"it is no YAML ({_first_line(error)})") from error
    if node is None:
        return [], {}
    if not isinstance(value, dict):
        raise Unusable("it has no `key: value` lines")
    entries = [
        (str(key.value), int(item.start_mark.index), int(item.end_mark.index))
        for key, item in node.value
    ]
    return entries, {str(key): _plain(item) for key, item in value.items()}


def _check_events(events: Iterable[Any]) -> None:
    depth = 0
    for event in events:
        name = type(event).__name__
        # A few lines of aliases can expand to gigabytes.
        if name == "AliasEvent":
            raise Unusable("it has an alias (`*name`)")
        depth += name in ("MappingStartEvent", "SequenceStartEvent")
        depth -= name in ("MappingEndEvent", "SequenceEndEvent")
        if depth > MAX_DEPTH:
            raise Unusable(f"it is nested more than {MAX_DEPTH} deep")


def _plain(value: Any) -> Any:
    """A value as JSON has it: dates and other things of YAML's own become text."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _take_references(
    source: str, key: str, start: int, end: int, base: int, into: ParsedNote
) -> None:
    for match in WIKILINK.finditer(source, start, end):
        found = read_wikilink(match)
        if found is not None:
            first, last = base + match.start(), base + match.end()
            where = f"frontmatter.{key}"
            into.references.append(replace(found, relation=key, field=where, start=first, end=last))


def _take_tags(
    source: str, entries: list[tuple[str, int, int]], base: int, into: ParsedNote
) -> None:
    for key, start, end in entries:
        if key not in _TAG_PROPERTIES:
            continue
        value = into.properties[key]
        names = _SEPARATORS.split(value) if isinstance(value, str) else words_of(value)
        at = start
        for name in filter(None, (name.strip().lstrip("#") for name in names)):
            found = source.find(name, at, end)
            at = found + len(name) if found >= 0 else at
            place = (base + found, base + at) if found >= 0 else (base + start, base + end)
            into.tags.append(Tag(name, f"frontmatter.{key}", *place))


def _first_line(error: Exception) -> str:
    return str(getattr(error, "problem", None) or error).split("\n", 1)[0][:120]
