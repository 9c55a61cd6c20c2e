"""Parses Markdown into references, tags, headings, and properties.

markdown-it-py reads CommonMark and tables; wikilinks and tags are added.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from foredeck.notes.parsed import (
    CONTENT,
    EMBEDS,
    MENTIONS,
    WIKILINK,
    NoteHeading,
    ParsedNote,
    Reference,
    Tag,
    read_wikilink,
    words_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_CHARS = 8_000_000
"""Of a longer text only frontmatter is read."""

LEAST_S, CHARACTER_S, MOST_S = 0.1, 1e-6, 0.6
"""Processor seconds: base, per character, most. Hostile text could take minutes."""

MOST = 10_000
"""Most references, tags and headings per text."""

CHUNK = 8_000
"""Characters of a paragraph parsed at once: hostile text costs the square."""

DENSE_CHUNK, DENSE = 500, 400
"""The same for parts with many brackets."""

_TAG = re.compile(r"#(?P<name>[^\u2000-\u206f\u2e00-\u2e7f'!\"#$%&()*+,.:;<=>?@^`{|}~\[\]\\\s]+)")
_CHECKBOX = re.compile(r"\[[ xX]\](?=\s|$)")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:|//|#|\?")
_BREAK = re.compile(r"\s(?=\S*\Z)")


class _TooLong(Exception):
    """The time for a text is up."""


def parse_note(text: str, *, properties_only: bool = False) -> ParsedNote:
    """Parses a Markdown text. Never raises."""
    parsed = ParsedNote()
    base = read_frontmatter(text, parsed)
    if len(text) > MAX_CHARS:
        problem = f"the text is longer than {MAX_CHARS:,} characters: only its properties are read"
        return _cut(parsed, problem)
    # Apart from `parsed`: of a text that takes too long only the properties count.
    body = ParsedNote()
    seconds = 0 if properties_only else min(LEAST_S + CHARACTER_S * len(text), MOST_S)
    try:
        _read_body(text[base:], base, body, time.thread_time() + seconds)
    except _TooLong:
        return _cut(parsed, "the text takes too long to read: only its properties are read")
    for name in ("references", "tags", "headings"):
        items_of_kind = getattr(body, name)
        if len(items_of_kind) > MOST:
            parsed.problems.append(f"of {len(items_of_kind):,} {name} the first {MOST:,} are read")
        getattr(parsed, name).extend(items_of_kind[:MOST])
    return parsed


def _cut(parsed: ParsedNote, problem: str) -> ParsedNote:
    parsed.problems.append(problem)
    parsed.is_cut = True
    return parsed


def _read_body(body: str, base: int, parsed: ParsedNote, until: float) -> None:
    parser, env = _parser(), {"until": until}  # type: Any, dict[str, Any]
    tokens = parser.parse(body, env)
    lines = SourceLines(body, base)
    for index, token in enumerate(tokens):
        if token.type != "inline" or not token.content or not token.map:
            continue
        opening = tokens[index - 1]
        place = lines.place(
            token.content, token.map[0], cell=opening.type in ("td_open", "th_open")
        )
        if opening.type == "heading_open":
            start = lines.start(token.map[0])
            parsed.headings.append(NoteHeading(int(opening.tag[1:]), token.content, start))
        env["task"] = index > 1 and tokens[index - 2].type == "list_item_open"
        _read_inline(parser, env, token.content, place, parsed)


def _read_inline(
    parser: Any, env: dict[str, Any], content: str, place: InlinePlace, parsed: ParsedNote
) -> None:
    for offset, chunk in _chunks(content):
        if "]" not in chunk and "#" not in chunk:
            continue
        _look_at_the_clock(env)
        tokens: list[Any] = []
        parser.inline.parse(chunk, parser, env, tokens)
        env["task"] = False
        for token in tokens:
            if "at" in token.meta:
                begin, end = token.meta["at"]
                start, end = place.source(offset + begin), place.source(offset + end - 1) + 1
                _take(token, start, end, parsed)


def _chunks(content: str) -> Iterator[tuple[int, str]]:
    """Parts of at most CHUNK characters, cut at white space if possible."""
    at = 0
    while at < len(content):
        part = content[at : at + CHUNK]
        if part.count("[") > DENSE:
            part = part[:DENSE_CHUNK]
        if at + len(part) < len(content):
            gap = _BREAK.search(part, len(part) // 2)
            part = part[: gap.end()] if gap else part
        yield at, part
        at += len(part)


def _take(token: Any, start: int, end: int, parsed: ParsedNote) -> None:
    if token.type == "tag":
        parsed.tags.append(Tag(token.content, CONTENT, start, end))
        return
    reference = token.meta["reference"]
    parsed.references.append(replace(reference, start=start, end=end))


@cache
def _parser() -> Any:
    # Loads with the first note.
    from markdown_it import MarkdownIt

    parser: Any = MarkdownIt("commonmark").enable("table")
    parser.disable(["inline", "text_join", "emphasis", "entity"])
    # Addresses are taken as they are written, those of local files too.
    parser.validateLink = lambda _address: True
    parser.normalizeLink = lambda address: address
    rules = parser.inline.ruler
    rules.before("link", "wikilink", _wikilink)
    rules.before("link", "tag", _tag)
    by_name = {rule.name: rule.fn for rule in rules.__rules__}
    rules.at("link", _placed(by_name["link"], "link_open", embed=False))
    rules.at("image", _placed(by_name["image"], "image", embed=True))
    first = parser.block.ruler.__rules__[0].name
    within = ["paragraph", "reference", "blockquote", "list", "table"]
    parser.block.ruler.before(first, "clock", _at_each_line, {"alt": within})
    return parser


def _at_each_line(state: Any, _line: int, _end: int, _silent: bool) -> bool:
    """A rule that only watches the clock."""
    # The parser asks its rules at every line: the only place at which it can be stopped.
    _look_at_the_clock(state.env)
    return False


def _look_at_the_clock(env: dict[str, Any]) -> None:
    if time.thread_time() > env["until"]:
        raise _TooLong


def _wikilink(state: Any, silent: bool) -> bool:
    at = state.pos
    if at == 0 and state.env.get("task") and (box := _CHECKBOX.match(state.src)):
        if not silent:
            state.pending += box[0]
        state.pos = box.end()
        return True
    match = WIKILINK.match(state.src, at, state.posMax)
    if match is None:
        return False
    if not silent:
        reference = read_wikilink(match)
        token = state.push("wikilink", "", 0)
        if reference is not None:
            token.meta = {"at": match.span(), "reference": reference}
    state.pos = match.end()
    return True


def _tag(state: Any, silent: bool) -> bool:
    at = state.pos
    if state.src[at] != "#" or (at and not state.src[at - 1].isspace()):
        return False
    match = _TAG.match(state.src, at, state.posMax)
    name = match["name"].strip("/") if match else ""
    if match is None or not name or name.replace("/", "").isdecimal():
        return False
    if not silent:
        token = state.push("tag", "", 0)
        token.content, token.meta = name, {"at": match.span()}
    state.pos = match.end()
    return True


def _placed(rule: Any, opening: str, *, embed: bool) -> Any:
    def placed(state: Any, silent: bool) -> bool:
        at, before = state.pos, len(state.tokens)
        if not rule(state, silent):
            return False
        if not silent:
            new: Sequence[Any] = state.tokens[before:]
            token = next(token for token in new if token.type == opening)
            reference = _local(token.attrs.get("src" if embed else "href", ""), embed)
            if reference is not None:
                label = token.content if embed else None
                token.meta = {
                    "at": (at, state.pos),
                    "reference": replace(reference, label=label or None),
                }
        return True

    return placed


def _local(address: str, embed: bool) -> Reference | None:
    path = address.removeprefix("file://")
    if not path or _SCHEME.match(path):
        return None
    path, _, heading = path.partition("#")
    return Reference(
        unquote(path.partition("?")[0], errors="surrogateescape"),
        relation=EMBEDS if embed else MENTIONS,
        embed=embed,
        heading=unquote(heading) or None,
        style="markdown",
    )


# From inline content, as the Markdown parser hands it out, back to the text that it came from.
#
# The parser strips what stands before and after a line of a paragraph (quote marks, list indents)
# and the backslash of an escaped bar in a table cell. It says which line content begins in; where
# within the line is found out here.

_LINE_END = re.compile(r"\r\n?|\n")


@dataclass(slots=True)
class InlinePlace:
    content: list[int] = field(default_factory=list)
    text: list[int] = field(default_factory=list)
    escapes: list[int] = field(default_factory=list)

    def source(self, offset: int) -> int:
        """The text offset of a content character."""
        line = bisect_right(self.content, offset) - 1
        shift = bisect_right(self.escapes, offset)
        return self.text[line] + offset - self.content[line] + shift


class SourceLines:
    """A text that starts `base` characters into the stored one."""

    def __init__(self, text: str, base: int) -> None:
        self._text = text
        self._base = base
        self._starts, self._ends = [0], []
        for end in _LINE_END.finditer(text):
            self._ends.append(end.start())
            self._starts.append(end.end())
        self._ends.append(len(text))
        self._cell_line, self._cell_end = -1, 0

    def start(self, line: int) -> int:
        return self._base + self._starts[line]

    def place(self, content: str, line: int, *, cell: bool) -> InlinePlace:
        """Place of content starting in `line`; table cells in order."""
        if cell:
            return self._place_cell(content, line)
        place, offset = InlinePlace(), 0
        for number, part in enumerate(content.split("\n"), line):
            stripped = part.strip()
            begin = self._find(stripped, number)
            place.content.append(offset)
            place.text.append(self._base + begin - (len(part) - len(part.lstrip())))
            offset += len(part) + 1
        return place

    def _find(self, part: str, number: int) -> int:
        number = min(number, len(self._starts) - 1)
        start = self._starts[number]
        line = self._text[start : self._ends[number]].replace("\0", "\ufffd")
        at = len(line.rstrip()) - len(part)
        if at < 0 or not line.startswith(part, at):
            at = max(line.find(part), 0)
        return start + at

    def _place_cell(self, content: str, line: int) -> InlinePlace:
        start, end = self._starts[line], self._ends[line]
        at = self._cell_end if line == self._cell_line else self._first_cell(line)
        while at < end and self._text[at] in " \t|":
            at += 1
        place = InlinePlace([0], [self._base + at])
        for offset, character in enumerate(content):
            if character == "|" and self._text.startswith("\\|", at):
                place.escapes.append(offset)
                at += 1
            at += 1
        self._cell_line, self._cell_end = line, max(at, start)
        return place

    def _first_cell(self, line: int) -> int:
        at, end = self._starts[line], self._ends[line]
        while at < end and self._text[at] in " \t>":
            at += 1
        return at


# YAML frontmatter: the properties of a note, read so that no text can do harm.
#
# Only plain values are made. What is long, deep or uses aliases is passed over with a word on why.


MAX_PROPERTIES = 32 * 1024
"""Characters of frontmatter."""
MAX_DEPTH = 20
_BLOCK = re.compile(
    r"\ufeff?---[ \t]*(?:\r\n?|\n)(?P<yaml>.*?)^---[ \t]*(?:\r\n?|\n|\Z)", re.DOTALL | re.MULTILINE
)
_TAG_PROPERTIES = ("tags", "tag")
_SEPARATORS = re.compile(r"[\s,]+")


class Unusable(ValueError):
    """Frontmatter that is not read, and why."""


def read_frontmatter(text: str, into: ParsedNote) -> int:
    """Reads the properties at the start of `text`; returns where they end."""
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
    """Properties with their places, and all values. Raises `Unusable`."""
    # Loads with the first note that has properties.
    import yaml

    if len(source) > MAX_PROPERTIES:
        raise Unusable(f"it has {len(source):,} characters, {MAX_PROPERTIES:,} are read")
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
        reference = read_wikilink(match)
        if reference is not None:
            first, last = base + match.start(), base + match.end()
            where = f"frontmatter.{key}"
            into.references.append(
                replace(reference, relation=key, field=where, start=first, end=last)
            )


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
            offset = source.find(name, at, end)
            at = offset + len(name) if offset >= 0 else at
            place = (base + offset, base + at) if offset >= 0 else (base + start, base + end)
            into.tags.append(Tag(name, f"frontmatter.{key}", *place))


def _first_line(error: Exception) -> str:
    return str(getattr(error, "problem", None) or error).split("\n", 1)[0][:120]
