"""Turns typed text into FTS5 queries; there are no syntax errors.

`"double quotes"` make a phrase, a final `*` a prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from foredeck.model.figures import MONTHS
from foredeck.model.names import (
    RUN,
    SHORTEST_PART,
    UNSPACED,
    WORD,
    composed,
    is_unspaced,
    joined,
    pairs,
    telling_parts,
)

MOST_TERMS = 48
"""Most terms; the rest is ignored."""

Phrase = tuple[str, ...]
"""Consecutive lower-case words of letters and digits."""

_CHUNK = re.compile(r'"([^"]*)"|(\S+)')
_STRETCH = re.compile(rf"[{UNSPACED}]+|[^{UNSPACED}]+")
_ENDING = re.compile(r"(?<=\w)['’](?:s|d|ll|m|re|ve)\b", re.IGNORECASE)
"""The ending of `Ann's` or `we'll`."""
_NEGATION = re.compile(r"\w+n['’]t\b", re.IGNORECASE)

_STOP_WORDS = """
a about am an and are as at be been being but by can cannot could did do does doing done for from
had has have having he her here him his how i if in into is it its just may me might my no nor not
of on or our over she should so some such than that the their them then there these they this those
to too under us very was we were what when where which who whom whose why will with without would
you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Searched only without others."""

_FORMS = """
begin began begun/bite bit bitten/blow blew blown/break broke broken
bring brought/build built/buy bought/catch caught/choose chose chosen/come came/dig dug
draw drew drawn/drink drank drunk/drive drove driven/eat ate eaten/fall fell fallen
feed fed/feel felt/fight fought/find found/fly flew flown/forget forgot forgotten
forgive forgave forgiven/freeze froze frozen/get got gotten/give gave given/go went gone
grow grew grown/hang hung/hear heard/hide hid hidden/hold held/keep kept/know knew known/lead led
leave left/lend lent/lose lost/make made/mean meant/meet met/pay paid/ride rode ridden
ring rang rung/rise rose risen/run ran/say said/see saw seen/sell sold/send sent/shake shook shaken
shine shone/shoot shot/show shown/sing sang sung/sink sank sunk/sit sat/sleep slept
speak spoke spoken/spend spent/stand stood/steal stole stolen/stick stuck/strike struck
swear swore sworn/sweep swept/swim swam swum/swing swung/take took taken/teach taught/tear tore torn
tell told/think thought/throw threw thrown/understand understood/wake woke woken/wear wore worn
win won/write wrote written/child children/foot feet/man men/mouse mice/person people/tooth teeth
woman women/life lives/wife wives/good better best/bad worse worst
"""
_MONTHS = tuple(name.lower() for name in MONTHS)
_MONTH = re.compile(rf"(?i:\b(?:{'|'.join(m for m in _MONTHS if m != 'may')})\b)|(?<!^)\bMay\b")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


@dataclass(frozen=True, slots=True)
class Term:
    text: str
    phrases: tuple[Phrase, ...]
    is_prefix: bool = False

    @property
    def matches(self) -> list[str]:
        """FTS5 queries of the phrases."""
        return [f'"{" ".join(words)}"' + "*" * self.is_prefix for words in self.phrases]

    @property
    def match(self) -> str:
        """The FTS5 query of all phrases."""
        return " OR ".join(self.matches)

    @property
    def is_unspaced(self) -> bool:
        return all(map(is_unspaced, self.phrases[0]))


def parse_query(text: str) -> list[Term]:
    """A query's unique terms in typed order."""
    terms: dict[str, Term] = {}
    for quoted, chunk in _CHUNK.findall(composed(text)):
        for term in _quoted(quoted) if quoted else _terms(chunk):
            terms.setdefault(term.text, term)
    # Words that say nothing are passed over in a query that has others.
    telling = [term for term in terms.values() if term.text not in STOP_WORDS]
    return (telling or list(terms.values()))[:MOST_TERMS]


def is_name(text: str) -> bool:
    return '"' not in text and len(text.split()) == 1


@dataclass(frozen=True, slots=True)
class Period:
    """A month of any year, or a year; in UTC."""

    month: int | None = None
    year: int | None = None

    def includes(self, time_ms: int) -> bool:
        moment = datetime.fromtimestamp(time_ms / 1000, UTC)
        return self.month in (None, moment.month) and self.year in (None, moment.year)


def periods_in(text: str) -> Iterator[Period]:
    """Months and years in a text; `may` only as `May` within a sentence."""
    months = dict.fromkeys(name.lower() for name in _MONTH.findall(text))
    yield from (Period(month=_MONTHS.index(name) + 1) for name in months)
    yield from (Period(year=int(year)) for year in dict.fromkeys(_YEAR.findall(text)))


def forms_of(word: str) -> tuple[str, ...]:
    """A word with irregular forms that stemming misses: `went` for `going`."""
    for base in _bases(word):
        if forms := _IRREGULAR.get(base):
            return (word, *(form for form in forms if form not in (word, base)))
    return (word,)


def _quoted(text: str) -> Iterator[Term]:
    if words := _words(text):
        yield Term(joined(words), (words,))


def _terms(chunk: str) -> Iterator[Term]:
    # An identifier or a path (`max_retries`, `src/app.py`) is found whole, as a phrase, and by its
    # parts. FTS5 stems words; irregular forms are asked for beside them.
    chunk = _NEGATION.sub("not", _ENDING.sub("", chunk))
    whole, is_prefix = _words(chunk), chunk.endswith("*")
    if whole and (is_prefix or len(whole) > 1):
        yield Term(joined(whole) + "*" * is_prefix, (whole,), is_prefix)
    if is_prefix and len(whole) == 1:
        return
    stretches = [one for one in _STRETCH.findall(chunk) if RUN.search(one)]
    for stretch in stretches:
        if not is_unspaced(stretch) and len(words := _words(stretch)) > 1:
            yield Term(joined(words), (words,))
        for part in _parts(stretch, alone=len(stretches) == 1):
            yield Term(part, tuple(_words(form) for form in forms_of(part)))


def _words(text: str) -> Phrase:
    return tuple(word.lower() for word in WORD.findall(text))


def _parts(stretch: str, *, alone: bool) -> Iterator[str]:
    runs = RUN.findall(stretch.lower())
    if is_unspaced(stretch):
        yield from (pair for pair in pairs(runs[0]) if alone or len(pair) > 1)
        return
    yield from (run for run in runs if len(run) >= SHORTEST_PART or len(runs) == 1)
    yield from (part for run in RUN.findall(stretch) for part in telling_parts(run))


_IRREGULAR = {
    word: tuple(line.split())
    for line in _FORMS.replace("/", "\n").splitlines()
    for word in line.split()
}


def _bases(word: str) -> Iterator[str]:
    yield word
    yield word.removesuffix("s")
    yield word.removesuffix("es")
    if word.endswith("ing"):
        stem = word[:-3]
        yield from (stem, f"{stem}e", stem[:-1] if stem[-2:-1] == stem[-1:] else stem)
