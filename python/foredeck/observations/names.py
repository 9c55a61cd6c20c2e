"""Names in remarks: which files and lines they mention, and which names nothing vouches for."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from foredeck.model.observations import Remark

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
    within = [(m.start(), m.end()) for m in _PATH.finditer(bare)]
    for match in _FILE.finditer(bare):
        if not any(start <= match.start() < end for start, end in within) and _is_file(match[0]):
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


class KnownNames:
    """What sources say: whether they hold a name, however it is capitalised."""

    def __init__(self, texts: Iterable[str], cwd: str = "") -> None:
        """`cwd`: the folder in which paths without a beginning lie."""
        self._text = "\n".join(texts).casefold()
        self._cwd = cwd.rstrip("/").casefold() + "/" if cwd else ""

    def __contains__(self, name: str) -> bool:
        return any(form in self._text for form in self._forms(name.casefold()))

    def _forms(self, name: str) -> Iterator[str]:
        yield name
        if self._cwd and name.startswith(self._cwd):
            yield name[len(self._cwd) :]
        yield name.removeprefix("./").rstrip("/")
        if "." in name and "/" not in name:
            # `User.validate` may be defined as `validate` in `class User`: both must be there.
            parts = name.split(".")
            if all(part in self._text for part in parts):
                yield parts[-1]


def unfounded(text: str, known: KnownNames, doubted: Collection[str] = ()) -> list[str]:
    """The names of a text that are in none of its sources, or are `doubted` there."""
    return [name for name in names_in(text) if name in doubted or name not in known]


def checked(
    remarks: Sequence[Remark], known: KnownNames, doubted: Collection[str] = ()
) -> list[Remark]:
    """The remarks, each with the names that nothing vouches for. `doubted`: names of which that
    was said of the sources already."""
    return [
        remark.model_copy(update={"unfounded": unfounded(all_of(remark), known, doubted)})
        for remark in remarks
    ]


def all_of(remark: Remark) -> str:
    """All that a remark says."""
    more = (text for texts in remark.mode_specific.values() for text in texts)
    return "\n".join([remark.content, *more])


def dropped(before: Iterable[str], after: str) -> list[str]:
    """The names that texts had and what takes their place does not."""
    known = KnownNames([after])
    return list(dict.fromkeys(n for text in before for n in names_in(text) if n not in known))


def _bare(name: str) -> str:
    return name.rstrip(".,;:")


def _is_file(name: str) -> bool:
    """`users.ts` is a file, `e.g` and `3.12` are none; `user.id` may be a field, not a file."""
    stem, _, ending = name.rpartition(".")
    return bool(stem) and not stem.isdigit() and bool(_ENDING.fullmatch(ending.lower()))
