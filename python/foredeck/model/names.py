"""Names in a text: identifiers, paths, numbers, and the words that they are made of.

A text is asked three things, each by a rule of its own:

WORD, humps   which words it is made of, so that a name is found by a part of it
identifiers   which names it can only have from elsewhere: whoever writes one has seen it
names_in      which paths, addresses and identifiers it spells out, as a reader would list them
"""

from __future__ import annotations

import re
import string

WORD = re.compile(r"[^\W_]+")
"""What is one word to FTS5's tokenizer: the parts of `snake_case`, dotted names and paths are."""

_HUMP = re.compile(r"[A-Z]+s?(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
"""A part of a word in camelCase; an abbreviation with its plural (`userIDs`) is one part."""


def humps(word: str) -> list[str]:
    """The parts of a word in camelCase, in lower case: `readHTTPBody` is read, http, body."""
    return [part.lower() for part in _HUMP.findall(word)]


# What a text can only have from elsewhere. Prompts depend on this rule, and every text that goes
# out is read by it: it has to be fast.

_ENDS = "./-"
"""Allowed within a word, and neither at its beginning nor at its end."""
_WORD_CHARS = f"{string.ascii_letters}{string.digits}_$"
_GAPS = bytes(code if chr(code) in _WORD_CHARS + _ENDS else ord(" ") for code in range(256))
"""Turns what belongs to no word into spaces."""
_TELLING = re.compile(r"[0-9_./$]|[a-z][A-Z]")
_ESCAPE = re.compile(r"\\(?:[bnrt]|u[0-9a-fA-F]{4})")
_DRIVE = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]:\\")
MIN_CHARS = 4
MIN_DIGITS = 3
MAX_CHARS = 200


def identifiers(text: str) -> frozenset[str]:
    """The identifiers, paths and numbers in a text; of a path its last part too. Ordinary words are
    left out, since they prove nothing.

    A word counts where it has at least `MIN_CHARS` characters and looks unlike prose: a digit, an
    underscore, a dot or slash inside, or a capital after a small letter. The letter of an escape,
    as in a string literal's `\\nCommand`, belongs to no word; in a path of Windows it does.
    """
    if "\\" in text and not _DRIVE.search(text):
        text = _ESCAPE.sub(" ", text)
    telling = _TELLING.search
    # Bytes are cut into words in half the time that a pattern takes. Most words are recognised
    # without one: plain ones, and names with a digit or an underscore.
    spaced = text.encode("ascii", "replace").translate(_GAPS).decode("ascii")
    found = {
        word
        for each in set(spaced.split())
        if not (each.isalpha() and each.islower())
        and (((word := each.strip(_ENDS)).isidentifier() and not word.isalpha()) or telling(word))
    }
    if "/" in text:
        tails = {word.rpartition("/")[2] for word in found if "/" in word}
        found |= {tail for tail in tails if telling(tail)}
    return frozenset(
        [
            word
            for word in found
            if MIN_CHARS <= len(word) <= MAX_CHARS
            or (MIN_DIGITS <= len(word) <= MAX_CHARS and word.isdecimal())
        ]
    )


def inner_identifiers(text: str) -> frozenset[str]:
    """Identifiers of a text that also every longer text has which holds it: none that begins or
    ends where the text does."""
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
"""`read/write`, `and/or`: as much a figure of speech as a path."""
_ENDING = re.compile(
    r"pyi?|[cm]?[jt]sx?|jsonl?|toml|ya?ml|md|rst|txt|rs|go|java|kts?|[ch](?:c|pp)?|cs|rb|php|swift"
    r"|scala|clj[cs]?|edn|exs?|erl|hs|mli?|sql|(?:ba|z|fi)?sh|ps1|html?|s?css|vue|svelte|xml|[ct]sv"
    r"|lock|cfg|ini|conf|env|log|ipynb|proto|gradle|tf|nix|lua|jl|dart|zig|png|svg|jpe?g|gif|pdf|db"
    r"|sqlite|gz|zip"
)
"""Of files: `users.ts` is one, `user.id` may be a field."""


def files_in(text: str) -> list[str]:
    """The files that a text mentions, as it writes them, in the order of their first mention."""
    bare = _URL.sub(" ", text)
    found = [(m.start(), _bare(m[0])) for m in _PATH.finditer(bare) if not _PLAIN.fullmatch(m[0])]
    # By character: a list of thousands of names takes no longer for each of them.
    within = bytearray(len(bare))
    for match in _PATH.finditer(bare):
        within[match.start() : match.end()] = bytes([1]) * len(match[0])
    for match in _FILE.finditer(bare):
        if not within[match.start()] and _is_file(match[0]):
            found.append((match.start(), _bare(match[0])))
    return list(dict.fromkeys(name for _, name in sorted(found) if name))


def lines_in(text: str) -> list[int]:
    """The line numbers that a text mentions (`a.py:45-60`, `line 12`): of a range both ends."""
    found = [int(number) for m in _LINES.finditer(text) for number in m.groups() if number]
    return list(dict.fromkeys(found))


def names_in(text: str) -> list[str]:
    """Paths, addresses and identifiers of a text, each once, in the order of their kinds."""
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
    """`users.ts` is a file, `e.g` and `3.12` are none; `user.id` may be a field, not a file."""
    stem, _, ending = name.rpartition(".")
    return bool(stem) and not stem.isdigit() and bool(_ENDING.fullmatch(ending.lower()))
