"""Names in a text: identifiers, paths, numbers, and the words they are made of.

And suffixes of a name that ask for a part: `@12 turns 3-7`, `chat:ID message 93`,
`@52::args.command`, `notes.md#Decisions`, `@12 v2`.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e"  # Thai
    "\u0e81-\u0ebd\u0ec0-\u0ecd\u0edc-\u0edf"  # Lao
    "\u1000-\u103f\u1050-\u109d"  # Burmese
    "\u1100-\u11ff\uac00-\ud7ff"  # Korean
    "\u1780-\u17b3\u17b6-\u17d3\u17dc-\u17dd"  # Khmer
    "\u3005-\u3007\u3031-\u3035\u3041-\u309f\u30a1-\u30fa\u30fc-\u312f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"  # Japanese and Chinese
)
"""Letters of scripts without spaces, as a character class."""
UNSPACED_MARKS = "".join(
    char
    for first, last in ((0x0E01, 0x0EDF), (0x1000, 0x109D), (0x1780, 0x17DD), (0x3099, 0x309A))
    for char in map(chr, range(first, last + 1))
    if unicodedata.category(char) in ("Mn", "Mc")
)
"""Their combining marks: vowels and tones."""

WORD = re.compile(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+")
"""A word of FTS5's tokenizer on `spaced` text."""
RUN = re.compile(rf"[{UNSPACED}]+|[^\W_{UNSPACED}]+")
"""Like `WORD`, with letters of scripts without spaces together."""

_LETTER = re.compile(f"([{UNSPACED}])")
_WIDE = re.compile(r"[\uff00-\uffef]+")


def is_unspaced(word: str) -> bool:
    """Whether a word or run belongs to a script without spaces."""
    return _LETTER.match(word) is not None


def composed(text: str) -> str:
    """A text with one form per letter, composed and of one width."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFC", text)
    return _WIDE.sub(lambda wide: unicodedata.normalize("NFKC", wide[0]), text)


def spaced(text: str) -> str:
    return text if text.isascii() else _LETTER.sub(r" \1 ", composed(text))


def joined(words: Iterable[str]) -> str:
    """Words as text, without spaces between letters that need none."""
    text = ""
    for word in words:
        text += " " * bool(text and not (is_unspaced(word) and is_unspaced(text[-1]))) + word
    return text


def pairs(run: str) -> list[str]:
    """A run's adjacent letter pairs in scripts without spaces; otherwise the run."""
    if len(run) < 3 or not is_unspaced(run):
        return [run]
    return [run[at : at + 2] for at in range(len(run) - 1)]


def words_in(text: str) -> list[str]:
    """Unique, case-folded words in order; letter pairs in scripts without spaces."""
    # Most of a long text is the same words again.
    runs = dict.fromkeys(RUN.findall(composed(text).casefold()))
    return list(dict.fromkeys(word for run in runs for word in pairs(run)))


_HUMP = re.compile(r"[A-Z]+s?(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def humps(word: str) -> list[str]:
    """The lower-case parts of a camelCase word: `readHTTPBody` is read, http, body."""
    return [part.lower() for part in _HUMP.findall(word)]


SHORTEST_PART = 3
"""Shortest part searched alone: `k` of `k8s` is everywhere."""


def telling_parts(word: str) -> list[str]:
    parts = humps(word) if word.isascii() else []
    return [part for part in parts if len(part) >= SHORTEST_PART] if len(parts) > 1 else []


# What a text can only have from elsewhere. Prompts depend on this rule, and every text that goes
# out is read by it: it has to be fast.

_ENDS = "./-"
"""Allowed within a word, not at its ends."""
_WORD_CHARS = f"{string.ascii_letters}{string.digits}_$"
_GAPS = bytes(code if chr(code) in _WORD_CHARS + _ENDS else ord(" ") for code in range(256))
"""Turns non-word characters into spaces."""
_TELLING = re.compile(r"[0-9_./$]|[a-z][A-Z]")
_ESCAPE = re.compile(r"\\(?:[bnrt]|u[0-9a-fA-F]{4})")
_DRIVE = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]:\\")
MIN_CHARS = 4
MIN_DIGITS = 3
MAX_CHARS = 200


def identifiers(text: str) -> frozenset[str]:
    """Identifiers, paths and numbers in a text.

    A word needs `MIN_CHARS` characters and a digit, underscore, inner dot or slash, or inner
    capital.
    """
    if "\\" in text and not _DRIVE.search(text):
        text = _ESCAPE.sub(" ", text)
    telling = _TELLING.search
    # Bytes are cut into words in half the time that a pattern takes. Most words are recognised
    # without one: plain ones, and names with a digit or an underscore.
    names = {
        word
        for each in set(words_of_names(text))
        if not (each.isalpha() and each.islower())
        and (((word := each.strip(_ENDS)).isidentifier() and not word.isalpha()) or telling(word))
    }
    if "/" in text:
        tails = {word.rpartition("/")[2] for word in names if "/" in word}
        names |= {tail for tail in tails if telling(tail)}
    return frozenset(
        [
            word
            for word in names
            if MIN_CHARS <= len(word) <= MAX_CHARS
            or (MIN_DIGITS <= len(word) <= MAX_CHARS and word.isdecimal())
        ]
    )


def words_of_names(text: str) -> list[str]:
    """The words of a text in which names can stand, with `_`, `$`, `.`, `/` and `-`."""
    return text.encode("ascii", "replace").translate(_GAPS).decode("ascii").split()


def inner_identifiers(text: str) -> frozenset[str]:
    """Identifiers not at a text's edges, which every longer text has too."""
    # How escapes are read depends on what stands elsewhere.
    return frozenset() if "\\" in text else identifiers(text.strip(_WORD_CHARS + _ENDS))


# What a text spells out, for people and models to read.

_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s\"'`<>)\]]+")
_PATH = re.compile(r"(?<![\w./@~-])(?:[~.]{0,2}/)?[\w@.+-]+(?:/[\w@.+-]+)+/?|(?<![\w./])/[\w@.+-]+")
_FILE = re.compile(r"(?<![\w./@-])[\w-][\w.-]*\.[A-Za-z][A-Za-z0-9]{0,7}\b(?![\w(])")
_LINES = re.compile(r"(?:\.[A-Za-z][\w]{0,7}|\blines?):? ?(\d{1,6})(?:-(\d{1,6}))?\b")
_IDENTIFIER = re.compile(
    r"(?<![\w./@-])(?:[A-Za-z_][\w]*(?:(?:\.|::|#)[A-Za-z_][\w]*)+|\w*[a-z0-9]_\w+|_*[a-z]+[a-z0-9]*"
    r"[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*|[A-Z][A-Z0-9]*_[A-Z0-9_]+|[A-Za-z_]\w+(?=\())"
)
_PLAIN = re.compile(r"[A-Za-z]+/[A-Za-z]+")
"""`read/write`, `and/or`: more a figure of speech than a path."""
_ENDING = re.compile(
    r"pyi?|[cm]?[jt]sx?|jsonl?|toml|ya?ml|md|rst|txt|rs|go|java|kts?|[ch](?:c|pp)?|cs|rb|php|swift"
    r"|scala|clj[cs]?|edn|exs?|erl|hs|mli?|sql|(?:ba|z|fi)?sh|ps1|html?|s?css|vue|svelte|xml|[ct]sv"
    r"|lock|cfg|ini|conf|env|log|ipynb|proto|gradle|tf|nix|lua|jl|dart|zig|png|svg|jpe?g|gif|pdf|db"
    r"|sqlite|gz|zip"
)
"""File endings: `users.ts` is a file, `user.id` may be a field."""


def files_in(text: str) -> list[str]:
    """Files that a text mentions, as written, in order."""
    bare = _URL.sub(" ", text)
    mentions = [
        (m.start(), _bare(m[0])) for m in _PATH.finditer(bare) if not _PLAIN.fullmatch(m[0])
    ]
    # By character: a list of thousands of names takes no longer for each of them.
    within = bytearray(len(bare))
    for match in _PATH.finditer(bare):
        within[match.start() : match.end()] = bytes([1]) * len(match[0])
    for match in _FILE.finditer(bare):
        if not within[match.start()] and _is_file(match[0]):
            mentions.append((match.start(), _bare(match[0])))
    return list(dict.fromkeys(name for _, name in sorted(mentions) if name))


def lines_in(text: str) -> list[int]:
    """Line numbers that a text mentions (`a.py:45-60`, `line 12`); of a range both ends."""
    numbers = [int(number) for m in _LINES.finditer(text) for number in m.groups() if number]
    return list(dict.fromkeys(numbers))


def names_in(text: str) -> list[str]:
    """Paths, addresses and identifiers of a text, unique, by kind."""
    urls = [url.rstrip(".,;:") for url in _URL.findall(text)]
    bare = _URL.sub(" ", text)
    files = files_in(bare)
    rest = bare
    for file in sorted(files, key=len, reverse=True):
        rest = rest.replace(file, " ")
    identifiers = [match[0] for match in _IDENTIFIER.finditer(rest) if len(match[0]) > 2]
    return list(dict.fromkeys([*urls, *files, *identifiers]))


def _bare(name: str) -> str:
    return name.rstrip(".,;:")


def _is_file(name: str) -> bool:
    stem, _, ending = name.rpartition(".")
    return bool(stem) and not stem.isdigit() and bool(_ENDING.fullmatch(ending.lower()))


_SLICE = re.compile(
    r"^(?P<name>.+?)\s+(?P<unit>turn|message|char)s?\s+(?P<first>\d+)(?:\s*(?:-|to)\s*(?P<last>\d+))?$"
)
_WITH_HASH = re.compile(r"^(?P<name>.+?)\s+at (?P<hash>[0-9a-f]{8,64})$")
_FIELD = re.compile(r"^(?P<name>.+?)\s*::(?P<field>[\w.\[\] -]+)$")
_SECTION = re.compile(r"^(?P<name>[^#]+?)\s*#(?P<section>.+)$")
_VERSION = re.compile(r"^(?P<name>.+?)\s+(?:v(?P<version>\d+)|(?:as of )?call (?P<call>\d+))$")

_LINK = re.compile(r"^!?\[\[(?P<inner>[^\[\]|]+)(?:\|[^\[\]]*)?\]\](?P<rest>.*)$")

OF_STORED = (_SLICE, _WITH_HASH, _FIELD)
"""Suffixes of any stored object."""
OF_A_SESSION = (*OF_STORED, _SECTION, _VERSION)
"""Suffixes within a session, which numbers its versions."""


@dataclass(frozen=True, slots=True)
class Slice:
    unit: str
    """`turn`, `message` (an answer with what preceded it) or `char`."""
    first: int
    last: int

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and self.first <= number <= self.last

    def __str__(self) -> str:
        last = "" if self.last == self.first else f"-{self.last}"
        return f"{self.unit}{'s' if last else ''} {self.first}{last}"


@dataclass(frozen=True, slots=True)
class AskedPart:
    version: int | None = None
    """By the session's count of versions."""
    call: int | None = None
    """The version of this call."""
    slice: Slice | None = None
    section: str | None = None
    """A heading of a Markdown file, or a block (`^id`)."""
    field: str | None = None
    """A field, such as `args.path`, instead of the content."""
    hash: str | None = None
    """Beginning of a stored version's hash."""


def unlinked(text: str) -> str:
    """A name without link marks: `[[notes/tides#Neap|tides]]` as `notes/tides#Neap`."""
    name = text.strip()
    link = _LINK.match(name)
    return name if link is None else (link["inner"].strip() + link["rest"]).strip()


def split_name(
    text: str, forms: Sequence[re.Pattern[str]], is_whole: Callable[[str], bool]
) -> tuple[str, AskedPart]:
    """Splits a name from its suffixes.

    `is_whole`: whether an object has exactly this name, suffix and all.
    """
    matches: list[re.Match[str]] = []
    while (match := _match(text, forms)) is not None and not is_whole(text):
        matches.append(match)
        text = match["name"]
        if match.re is _VERSION:
            break  # a version is one of an object, not of a part or a version of it
    # The innermost first: of two that say the same, the one that stands last counts.
    return text, reduce(_with, reversed(matches), AskedPart())


def _match(text: str, forms: Sequence[re.Pattern[str]]) -> re.Match[str] | None:
    return next((match for form in forms if (match := form.match(text))), None)


def _with(part: AskedPart, match: re.Match[str]) -> AskedPart:
    if match.re is _SLICE:
        first = int(match["first"])
        return replace(part, slice=Slice(match["unit"], first, int(match["last"] or first)))
    if match.re is _WITH_HASH:
        return replace(part, hash=match["hash"])
    if match.re is _FIELD:
        return replace(part, field=match["field"].strip())
    if match.re is _SECTION:
        return replace(part, section=match["section"].strip())
    if match["version"]:
        return replace(part, version=int(match["version"]))
    return replace(part, call=int(match["call"]))
