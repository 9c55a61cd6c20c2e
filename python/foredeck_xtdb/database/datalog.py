"""Datalog queries that people write: read, checked to do nothing but read, and bounded.

A stock server calls whatever a query names, so what was checked is what is sent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from foredeck.errors import ForedeckError
from foredeck_xtdb.database.client import to_edn

# EDN, as a tree that keeps the words in which it was written

MOST_NESTED = 100
"""How deep forms may be nested."""

Kind = Literal["symbol", "keyword", "string", "number", "character", "constant"]


@dataclass(frozen=True, slots=True)
class Atom:
    kind: Kind
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Group:
    """A list `(`, vector `[`, map `{` or set `#{`."""

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
_WORDS: Mapping[Kind, re.Pattern[str]] = {
    "constant": re.compile("nil|true|false"),
    "number": re.compile(r"[+-]?\d+(?:N|M|/\d+|(?:\.\d*)?(?:[eE][+-]?\d+)?M?)"),
    "keyword": re.compile(r":[^\s:/][^\s/]*(?:/[^\s/]+)?"),
    "symbol": re.compile(r"(?![+-]\d)(?:/|[^\d:/'][^/]*(?:/(?:/|[^/]+))?)"),
}
"""Forms of words; the first that fits wins."""


def read_edn(text: str) -> Form:
    """The one form in `text`. Raises `ValueError` that says what is wrong and where."""
    tokens = _Tokens(text)
    form = tokens.form(0)
    if form is None:
        raise ValueError("there is nothing to read")
    if (more := tokens.form(0)) is not None:
        raise ValueError(f"there is more than one form: {more} comes after the first")
    return form


class _Tokens:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split()

    def _split(self) -> Iterator[tuple[str, str, int]]:
        place = 0
        while place < len(self._text):
            # A quote changes nothing: no form is evaluated here.
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
        """The next form; None at the end."""
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
        for name, form in _WORDS.items():
            if form.fullmatch(text):
                return Atom(name, text)
        raise ValueError(f"{self._where(place)}: this is neither number, keyword nor symbol")


# Queries

_ALLOWED = """
* *' + +' - -' / < <= = == > >= aget alength any? array-map aset aset-boolean aset-byte aset-char
aset-double aset-float aset-int aset-long aset-short assoc assoc! assoc-in associative? bigdec
bigint biginteger bit-and bit-and-not bit-clear bit-flip bit-not bit-or bit-set bit-shift-left
bit-shift-right bit-test bit-xor boolean boolean? booleans butlast byte bytes bytes? cast char
char? chars coll? compare concat conj conj! cons contains? count counted? cycle dec dec' decimal?
dedupe disj dissoc dissoc! distinct distinct? double double? doubles drop drop-last empty empty?
even? false? ffirst find first flatten float float? floats fnext format frequencies gensym get
get-in hash-map hash-set ident? identical? identity inc inc' indexed? inst? instance? int int?
integer? interleave interpose into-array ints keys keyword keyword? last list list* list? long
longs map? max max-key merge min min-key mod name namespace nat-int? neg-int? neg? next nfirst
nil? nnext not not-empty not= ns-name nth nthnext nthrest num number? odd? partition partition-all
peek persistent! pop pop! pos-int? pos? qualified-ident? qualified-keyword? qualified-symbol? quot
rand rand-int rand-nth random-sample range ratio? rational? rationalize re-find re-groups
re-matcher re-matches re-pattern re-seq record? rem repeat replace rest reverse reversible? rseq
rsubseq second select-keys seq seq? seqable? sequential? set set? short shorts shuffle
simple-ident? simple-keyword? simple-symbol? some? sort sorted-set sorted-set-by sorted? split-at
str string? subs subseq subvec symbol symbol? take take-last take-nth to-array-2d transient true?
type unsigned-bit-shift-right update update-in uri? uuid? vals vec vector vector-of vector? zero?
zipmap
"""
FUNCTIONS = frozenset(_ALLOWED.split())
"""Clojure's part of XTDB's own allow list (`query-allowlist.edn`)."""

_AGGREGATES = frozenset(
    (
        *("avg", "count", "count-distinct", "distinct", "max", "median", "min", "rand", "sample"),
        *("stddev", "sum", "variance"),
    )
)
_BUILT_IN = frozenset(("==", "!=", "get-attr", "get-start-valid-time", "get-end-valid-time"))
_TERMS_AFTER = {"not": 1, "and": 1, "or": 1, "not-join": 2, "or-join": 2}
"""Clauses of clauses, with the number of items before those."""
_VECTORS = ("find", "in", "where", "rules", "order-by", "keys", "syms", "strs")
_NUMBERS = ("limit", "offset", "timeout", "batch-size")
_NUMBER = r"[+-]?(?:0|[1-9]\d*)(?:N|/[1-9]\d*|(?:\.\d+)?(?:[eE][+-]?\d+)?M?)"
_EDN = re.compile(rf"""["\\[{{(#:]|(?:{_NUMBER}|true|false|nil)$""")
"""How EDN begins; everything else is text."""
_EXAMPLE = '{:find [?e] :where [[?e :foredeck/type "file"]]}'

Parts = dict[str, Form]
"""A query by key, without colons."""


class QueryRefused(ForedeckError):
    """A query that cannot be read, or does what it may not; the text says what to change."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Query:
    """A checked query, and its columns' names."""

    body: str
    columns: tuple[str, ...]
    fields: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """By column, the object's fields that are wanted."""

    def values(self, row: Any) -> list[Any]:
        """An answer's row by column."""
        found = [row.get(name) for name in self.columns] if isinstance(row, dict) else list(row)
        for place, path in self.fields.items():
            # One attribute was pulled, all fields as JSON; what is no object has none.
            texts = list((found[place] or {}).values())
            found[place] = _at(json.loads(texts[0]), path) if texts else None
        return found


def _at(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value


def prepare(
    text: str, arguments: Sequence[str], *, limit: int, timeout_ms: int, namespace: str = "foredeck"
) -> Query:
    """The query in `text`, with values for its `:in`, bounded in rows and time.

    `(field ?e "args.command")` gives a field of an object of the `namespace`. Raises
    `QueryRefused`.
    """
    query = _parts(_read(text))
    columns, fields = _columns(query), _pull_fields(query, namespace)
    _check_query(query)
    inputs = [form for form in _items(query.get("in")) if str(form) != "$"]
    if len(inputs) != len(arguments):
        raise QueryRefused(
            f"the query's :in names {len(inputs)} values, and {len(arguments)} are given after it"
        )
    _bound(query, "limit", limit)
    _bound(query, "timeout", timeout_ms)
    words = " ".join(f":{name} {form}" for name, form in query.items())
    values = " ".join(str(argument(text)) for text in arguments)
    return Query(f"{{:query {{{words}}} :in-args [{values}]}}", columns, fields)


def _pull_fields(query: Parts, namespace: str) -> dict[int, Sequence[str]]:
    """Pulls each `(field ?e "path")` of `:find`; returns the paths by place."""
    paths: dict[int, Sequence[str]] = {}
    found = list(_items(query["find"]))
    for place, form in enumerate(found):
        if _is_list(form) and _head(form) == "field":
            kinds = [item.kind if isinstance(item, Atom) else "" for item in _items(form)[1:]]
            if kinds != ["symbol", "string"]:
                raise QueryRefused(f'{form} is not like (field ?e "args.command")')
            _, variable, path = _items(form)
            paths[place] = str(path)[1:-1].split(".")
            found[place] = _read(f"(pull {variable} [:{namespace}/fields])")
    query["find"] = Group("[", tuple(found))
    return paths


def argument(text: str) -> Form:
    """A value from a command line: EDN, else text."""
    return _read(text) if _EDN.match(text) else Atom("string", to_edn(_utf8(text)))


def _utf8(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise QueryRefused(f"{text!r} is not UTF-8, so XTDB cannot hold it") from error
    return text


def _read(text: str) -> Form:
    try:
        return read_edn(_utf8(text))
    except ValueError as error:
        raise QueryRefused(f"this is not EDN: {error}") from error


def _bound(query: Parts, name: str, most: int) -> None:
    own = query.get(name)
    value = int(str(own)) if own is not None and str(own).isdecimal() else most
    query[name] = Atom("number", str(min(value, most)))


def _columns(query: Mapping[str, Form]) -> tuple[str, ...]:
    for name in ("keys", "syms", "strs"):
        if name in query:
            return tuple(map(str, _items(query[name])))
    return tuple(map(str, _items(query["find"])))


# Taking apart


def _parts(form: Form) -> Parts:
    if not isinstance(form, Group) or form.opened not in ("{", "["):
        raise QueryRefused(f"a query is a map, such as {_EXAMPLE}")
    parts = _of_vector(form) if form.opened == "[" else {}
    if form.opened == "{":
        for key, value in zip(form.items[::2], form.items[1::2], strict=True):
            parts[_name(key, parts)] = value
    for name, value in parts.items():
        if name in _NUMBERS and not (isinstance(value, Atom) and value.kind == "number"):
            raise QueryRefused(f":{name} takes a number, not {value}")
        if name in _VECTORS and not (isinstance(value, Group) and value.opened == "["):
            raise QueryRefused(f":{name} takes a vector, not {value}")
    if not _items(parts.get("find")):
        raise QueryRefused(f"the query has no :find; one that has is {_EXAMPLE}")
    return parts


def _of_vector(form: Group) -> Parts:
    parts: dict[str, list[Form]] = {}
    name = ""
    for item in form.items:
        if isinstance(item, Atom) and item.kind == "keyword":
            name = _name(item, parts)
            parts[name] = []
        elif not name:
            raise QueryRefused(f"a query in a vector begins with :find, not with {item}")
        else:
            parts[name].append(item)
    return {
        name: items[0] if name in _NUMBERS and len(items) == 1 else Group("[", tuple(items))
        for name, items in parts.items()
    }


def _name(form: Form, found: Mapping[str, object]) -> str:
    name = str(form).removeprefix(":")
    if not isinstance(form, Atom) or form.kind != "keyword" or name not in (*_VECTORS, *_NUMBERS):
        known = ", ".join(f":{name}" for name in (*_VECTORS, *_NUMBERS))
        raise QueryRefused(f"a query has no part {form}, only {known}")
    if name in found:
        raise QueryRefused(f"the query has two parts {form}")
    return name


def _items(form: Form | None) -> tuple[Form, ...]:
    return form.items if isinstance(form, Group) else ()


# Checking


def _check_query(query: Parts) -> None:
    for form in (*_items(query["find"]), *_items(query.get("order-by"))):
        if not _is_list(form) or _head(form) != "pull":
            _check_expression(form)
    for term in _items(query.get("where")):
        _check_term(term)
    for rule in _items(query.get("rules")):
        for term in _items(rule)[1:]:
            _check_term(term)


def _check_expression(form: Form) -> None:
    if _is_list(form):
        _check_function(_head(form), _AGGREGATES | {"if"})
    for item in _items(form):
        _check_expression(item)


def _check_term(term: Form) -> None:
    items = _items(term)
    if not _is_list(term):
        if items and _is_list(items[0]):
            _check_call(items[0])
            items = items[1:]
        _check_data(items)
    elif (before := _TERMS_AFTER.get(_head(term))) is not None:
        for item in items[before:]:
            _check_term(item)
    else:
        _check_data(items)  # the use of a rule


def _check_call(call: Form) -> None:
    """Checks the first part of a predicate, `(f ?x "y")`."""
    name, arguments = _head(call), _items(call)[1:]
    if name == "q" and arguments:
        _check_query(_parts(arguments[0]))
        arguments = arguments[1:]
    else:
        _check_function(name, _BUILT_IN)
    _check_data(arguments)


def _check_function(name: str, more: frozenset[str]) -> None:
    if name not in more and name.removeprefix("clojure.core/") not in FUNCTIONS:
        raise QueryRefused(
            f"queries may not call {name}: only functions that read nothing but their arguments "
            "are allowed (XTDB's own allow list)"
        )


def _check_data(forms: Iterable[Form]) -> None:
    for form in forms:
        if _is_list(form):
            raise QueryRefused(f"{form} stands where a value or a variable belongs")
        if isinstance(form, Tagged):
            _check_data([form.form])
        _check_data(_items(form))


def _is_list(form: Form) -> bool:
    return isinstance(form, Group) and form.opened == "("


def _head(form: Form) -> str:
    first = _items(form)[:1]
    if not first or not isinstance(first[0], Atom) or first[0].kind != "symbol":
        raise QueryRefused(f"{form} does not begin with a name")
    return first[0].text
