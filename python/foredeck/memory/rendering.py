"""Entries as the model reads them: a line each, with how far each is trusted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from foredeck.memory.entry import MemoryEntry
from foredeck.memory.lasting import says_it_lasts
from foredeck.memory.words import content_words
from foredeck.model.figures import whole_lines
from foredeck.model.quoting import block, one_line

MAX_BYTES = 16 * 1024
"""Of one section, however much the head has room for."""

REST_SHARE, LEAST_REST, MOST_REST, WORD_CHARS = 0.6, 80, 600, 40
"""How long the line on what is left out may be: this share of its section, but at least and at most
so many characters. To say that something is left out comes before one rule more. It names no word
that is longer than the last number."""

_NAME = re.compile(r"[^\W_]+(?:[-_./][^\W_]+)*")


def is_rule(entry: MemoryEntry) -> bool:
    """Whether the user has stated that it holds for good: a preference, or what says so."""
    document = entry.document
    return entry.trust == "user-stated" and (
        document.category == "preference" or says_it_lasts(document.fact)
    )


def line_of(entry: MemoryEntry) -> str:
    """The line of an entry. A rule is said in short: it holds whenever it was learned."""
    short, *_ = lines_of(entry)
    return short


def lines_of(entry: MemoryEntry) -> list[str]:
    """The line of an entry, and behind it the one that earlier versions wrote for a rule."""
    line = _dated(entry)
    return [f"- [{entry.trust}] {_text(entry)}", line] if is_rule(entry) else [line]


def _text(entry: MemoryEntry) -> str:
    document, text = entry.document, one_line(entry.document.fact)
    if document.native and document.native != document.fact:
        text += f" ({one_line(document.native)})"
    return text


def _dated(entry: MemoryEntry) -> str:
    document, text, learned = entry.document, _text(entry), day(entry.document.learned_ms)
    if document.place == "findings":
        tags = "".join(f" #{one_line(tag)}" for tag in document.tags)
        return f"- [{entry.trust}] [{learned}] {text}{tags}"
    return f"- [{entry.trust}] [{document.category}] {text} (learned {learned})"


def section_text(
    entries: Sequence[MemoryEntry], moved: int, limit: int, *, searched: bool = True
) -> str:
    """The first of `entries` that fit into `limit` characters, each whole, with a line on those
    that do not.

    moved     how many are left out because what they rest on has changed
    searched  whether the model can find what is left out, so that the line says by which words
    """
    lines, words = [line_of(entry) for entry in entries], words_of(entries) if searched else []
    changed = f"({moved} left out: the code that they rest on has changed)" if moved else ""
    for count in range(len(lines), -1, -1):
        room = min(MOST_REST, max(LEAST_REST, int(REST_SHARE * limit)))
        rest = _rest(len(lines) - count, words[count:], room)
        text = "\n".join(filter(None, [*lines[:count], rest, changed]))
        if len(text) <= limit and len(text.encode(errors="surrogatepass")) <= MAX_BYTES:
            return text
    return ""


def words_of(entries: Sequence[MemoryEntry]) -> list[str]:
    """For each entry the word to search it by: one that the fewest others have, of these the
    longest; a name with its hyphens and dots counts as one."""
    found = [_names(entry.document.fact) for entry in entries]
    holders = Counter(word.casefold() for words in found for word in set(words))
    return [
        min(words, key=lambda word: (holders[word.casefold()], -len(word), word), default="")
        for words in found
    ]


def _names(text: str) -> list[str]:
    words = [word for word in _NAME.findall(one_line(text)) if len(word) <= WORD_CHARS]
    telling = [word for word in words if len(word) > 2 and content_words(word)]
    return telling or words


def _rest(count: int, words: Sequence[str], limit: int) -> str:
    """The line on what is left out: how many, and the words that find them, as many as fit."""
    if not count:
        return ""
    bare, named = f"({count} left out)", list(dict.fromkeys(filter(None, words)))
    text = f"({count} left out; memory-search finds them by: "
    shown: list[str] = []
    for word in named:
        if len(text) + len(", ".join([*shown, word])) + len(", ...)") > limit:
            break
        shown.append(word)
    more = ", ..." if len(shown) < len(named) else ""
    return f"{text}{', '.join(shown)}{more})" if shown else bare


def cut_text(text: str, limit: int) -> str:
    """A text of the user's own as far as it fits, in whole lines, with a word on the rest."""
    return whole_lines(block(text), limit, MAX_BYTES)


def day(time_ms: int) -> str:
    """By universal time: `2026-05-03`."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d")
