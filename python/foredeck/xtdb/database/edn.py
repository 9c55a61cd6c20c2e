"""EDN, as far as queries need it: plain values as text, and text as a tree that keeps its words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

MOST_NESTED = 100
"""How deep forms may be nested."""

Kind = Literal["symbol", "keyword", "string", "number", "character", "constant"]


@dataclass(frozen=True, slots=True)
class Atom:
    """A form without parts, in the words in which it was written."""

    kind: Kind
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Group:
    """A list `(`, a vector `[`, a map `{` or a set `#{`; a map's items are keys and values."""

    opened: str
    items: tuple[Form, ...]

    def __str__(self) -> str:
        return f"{self.opened}{' '.join(map(str, self.items))}{_CLOSING[self.opened]}"


@dataclass(frozen=True, slots=True)
class Tagged:
    """`#inst "..."` and its like."""

    tag: str
    form: Form

    def __str__(self) -> str:
        return f"#{self.tag} {self.form}"


Form = Atom | Group | Tagged

_CLOSING = {"(": ")", "[": "]", "{": "}", "#{": "}"}
_TOKEN = re.compile(
    r"""(?P<space>(?:[\s,]|;[^\n]*)+)
    |(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<character>\\(?:newline|return|space|tab|formfeed|backspace|u[0-9A-Fa-f]{4}|[^\s])
        (?=[\s,;"()\[\]{}]|$))
    |(?P<open>\#\{|[(\[{])
    |(?P<close>[)\]}])
    |(?P<discard>\#_)
    |\#(?P<tag>[A-Za-z][\w.*+!?$%&=<>/-]*)
    |(?P<word>[^\s,;"()\[\]{}\\\#@~^`][^\s,;"()\[\]{}\\@~^`]*)""",
    re.VERBOSE | re.DOTALL,
)
_NUMBER = re.compile(r"[+-]?\d+(?:N|M|/\d+|(?:\.\d*)?(?:[eE][+-]?\d+)?M?)")
_KEYWORD = re.compile(r":[^\s:/][^\s/]*(?:/[^\s/]+)?")
_SYMBOL = re.compile(r"/|[^\d:/'][^/]*(?:/(?:/|[^/]+))?")


def write(value: Any) -> str:
    """`value` as EDN: str, int, bool, None, and lists of those.

    Raises `TypeError` for anything else. Texts must be free of lone surrogates.
    """
    match value:
        case None:
            return "nil"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            # EDN's reader knows every escape that JSON's writer makes.
            return json.dumps(value, ensure_ascii=False)
        case list() | tuple():
            return f"[{' '.join(map(write, value))}]"
    raise TypeError(f"{type(value).__name__} is not written as EDN")


def read(text: str) -> Form:
    """The one form in `text`. Raises `ValueError`, which says what is wrong and where."""
    tokens = _Tokens(text)
    form = tokens.form(0)
    if form is None:
        raise ValueError("there is nothing to read")
    if (more := tokens.form(0)) is not None:
        raise ValueError(f"there is more than one form: {more} comes after the first")
    return form


def entries(group: Group) -> list[tuple[Form, Form]]:
    """Keys and values of a map."""
    return list(zip(group.items[::2], group.items[1::2], strict=True))


class _Tokens:
    """Reads forms from the front of a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split()

    def _split(self) -> Iterator[tuple[str, str, int]]:
        place = 0
        while place < len(self._text):
            # Quoted forms stand for themselves: nothing is evaluated here.
            if self._text[place] == "'":
                place += 1
                continue
            match = _TOKEN.match(self._text, place)
            if match is None:
                raise ValueError(f"{self._where(place)}: this is not EDN")
            if match.lastgroup != "space":
                assert match.lastgroup is not None
                yield match.lastgroup, match[match.lastgroup], place
            place = match.end()

    def _where(self, place: int) -> str:
        lines = self._text[:place].split("\n")
        near = self._text[place : place + 20].split("\n")[0]
        return f"line {len(lines)}, column {len(lines[-1]) + 1} (at {near!r})"

    def form(self, depth: int, closing: str = "") -> Form | None:
        """The next form; None at the end of the text, or of the group that `closing` ends."""
        if depth > MOST_NESTED:
            raise ValueError(f"forms are nested deeper than {MOST_NESTED}")
        for kind, text, place in self._tokens:
            if kind == "close":
                if text != closing:
                    raise ValueError(f"{self._where(place)}: nothing is open that this closes")
                return None
            if kind == "discard":
                self._must(depth, closing, place)
            elif kind == "tag":
                return Tagged(text, self._must(depth, closing, place))
            elif kind == "open":
                return self._group(text, depth, place)
            else:
                return self._atom(kind, text, place)
        if closing:
            raise ValueError(f"the text ends where {closing} is missing")
        return None

    def _must(self, depth: int, closing: str, place: int) -> Form:
        form = self.form(depth + 1, closing)
        if form is None:
            raise ValueError(f"{self._where(place)}: a form is missing after this")
        return form

    def _group(self, opened: str, depth: int, place: int) -> Group:
        items: list[Form] = []
        while (form := self.form(depth + 1, _CLOSING[opened])) is not None:
            items.append(form)
        if opened == "{" and len(items) % 2:
            raise ValueError(f"{self._where(place)}: this map has a key without a value")
        return Group(opened, tuple(items))

    def _atom(self, kind: str, text: str, place: int) -> Atom:
        if kind == "string":
            return Atom("string", text)
        if kind == "character":
            return Atom("character", text)
        if text in ("nil", "true", "false"):
            return Atom("constant", text)
        if _NUMBER.fullmatch(text):
            return Atom("number", text)
        if _KEYWORD.fullmatch(text):
            return Atom("keyword", text)
        if _SYMBOL.fullmatch(text) and not re.match(r"[+-]\d", text):
            return Atom("symbol", text)
        raise ValueError(f"{self._where(place)}: this is neither number, keyword nor symbol")
