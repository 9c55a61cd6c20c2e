"""Memory in the head, a line each with its trust."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from foredeck.memory.entry import MemoryEntry
from foredeck.memory.ground import GroundReader
from foredeck.memory.words import content_words, says_it_lasts
from foredeck.model.figures import whole_lines
from foredeck.model.memory import MemoryDocument
from foredeck.model.quoting import block, one_line
from foredeck.regular_files import read_text
from foredeck.store.store import Store

RULES = "rules, by the user"
OF_USER = "memory of the user and the project"
OF_SESSION = "memory of this session"
FINDINGS = "findings in this session's data"

MAX_BYTES = 16 * 1024
"""Of one section."""

REST_SHARE, LEAST_REST, MOST_REST, WORD_CHARS = 0.6, 80, 600, 40
"""Length of the line on omitted entries; a name is no longer word than the last number."""

_NAME = re.compile(r"[^\W_]+(?:[-_./][^\W_]+)*")


@dataclass(frozen=True, slots=True)
class RulesSection:
    """The user's written rules, not learned memory."""

    path: Path
    name: str = RULES
    has_floor: bool = True

    def text(self, limit: int) -> str:
        """The file as far as it fits."""
        try:
            return cut_text(read_text(self.path, errors="replace").strip(), limit)
        except OSError:
            return ""


@dataclass(frozen=True, slots=True)
class EntriesSection:
    """One place of memory.

    `about`: words of the project's files; `searched`: the model can search what is left out.
    """

    name: str
    entries: Callable[[], Sequence[MemoryEntry]]
    ground: GroundReader
    store: Store
    about: Callable[[], Collection[str]] = frozenset
    has_floor: bool = False
    searched: bool = True
    known: dict[str, str] = field(default_factory=dict, repr=False)
    """Entries by lines that were in the prompt."""

    def text(self, limit: int) -> str:
        """Entries with unchanged grounds, as many as fit: lasting statements first, then by last
        use."""
        valid, moved = self._sorted_out()
        ordered = in_order(valid, self.about())
        return section_text(ordered, len(moved), limit, searched=self.searched)

    def is_withdrawn(self, said: str) -> bool:
        """Whether a line must leave: the user removed or moved its entry, or its ground changed."""
        # What merely reads otherwise by now, or has made room for others, can wait for the next
        # time that the head is written: what leaves at once costs the provider's whole cache.
        lines = [line for line in said.splitlines() if line.startswith("- ")]
        if not lines:
            return False
        valid, _moved = self._sorted_out()
        unknown = _without(lines, map(line_of, valid))
        here = {entry.id for entry in valid}
        unknown = [line for line in unknown if not self._may_wait(self.known.get(line), here)]
        if unknown:
            self._look_up(unknown)
        return any(not self._may_wait(self.known.get(line), here) for line in unknown)

    def _sorted_out(self) -> tuple[list[MemoryEntry], list[MemoryEntry]]:
        entries = self.entries()
        moved = [entry for entry in entries if self.ground.moved(entry.document.grounds)]
        gone = {entry.id for entry in moved}
        return [entry for entry in entries if entry.id not in gone], moved

    def _may_wait(self, id: str | None, here: Collection[str]) -> bool:
        head = None if id is None else self.store.head(id)
        if head is None:
            return False
        document = MemoryDocument.model_validate(dict(head.fields))
        has_left = document.state in ("superseded", "evicted", "expired")
        return id in here or (has_left and not self.ground.moved(document.grounds))

    def _look_up(self, lines: Sequence[str]) -> None:
        # All of memory is searched, so what was found is kept for the calls to come.
        for head in self.store.query("memory"):
            for text in lines_in_prompts(self.store, head.id):
                beginnings = (line for line in lines if text.startswith(line))
                self.known.update(dict.fromkeys(beginnings, head.id))


def in_order(entries: Iterable[MemoryEntry], about: Collection[str]) -> list[MemoryEntry]:
    def place(entry: MemoryEntry) -> tuple[bool, int, int, tuple[int, str]]:
        shared = len({*content_words(entry.document.fact)} & {*about})
        return is_rule(entry), shared, entry.document.used_ms, entry.age

    return sorted(entries, key=place, reverse=True)


def is_rule(entry: MemoryEntry) -> bool:
    """A preference, or the user's word that says it lasts."""
    document = entry.document
    return entry.trust == "user-stated" and (
        document.category == "preference" or says_it_lasts(document.fact)
    )


def section_text(
    entries: Sequence[MemoryEntry], moved: int, limit: int, *, searched: bool = True
) -> str:
    """The first of `entries` that fit, each whole, with a line on the others.

    `moved`: left out because their grounds changed.
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


def line_of(entry: MemoryEntry) -> str:
    """An entry's line; rules have no date."""
    return f"- [{entry.trust}] {_text(entry)}" if is_rule(entry) else dated_line(entry)


def lines_in_prompts(store: Store, id: str) -> Iterator[str]:
    """An entry's possible lines in prompts, in all versions."""
    for version in store.history(id):
        document = MemoryDocument.model_validate(dict(version.fields))
        for trust in ("user-stated", "derived"):
            entry = MemoryEntry(document, version.token, trust)
            # Tools answer with the dated line, of rules too.
            yield from {line_of(entry): None, dated_line(entry): None}


def words_of(entries: Sequence[MemoryEntry]) -> list[str]:
    """A search word per entry: the rarest, then longest; names with hyphens and dots are one
    word."""
    word_lists = [_names(entry.document.fact) for entry in entries]
    holders = Counter(word.casefold() for words in word_lists for word in set(words))
    return [
        min(words, key=lambda word: (holders[word.casefold()], -len(word), word), default="")
        for words in word_lists
    ]


def day(time_ms: int) -> str:
    """In UTC: `2026-05-03`."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d")


def cut_text(text: str, limit: int) -> str:
    """The user's text as far as it fits, in whole lines."""
    return whole_lines(block(text), limit, MAX_BYTES)


def _text(entry: MemoryEntry) -> str:
    document, text = entry.document, one_line(entry.document.fact)
    if document.native and document.native != document.fact:
        text += f" ({one_line(document.native)})"
    if document.promoted_from is not None and document.place == "global":
        what = "finding" if document.promoted_from == "findings" else "session entry"
        text += f" (promoted from a {what})"
    return text


def dated_line(entry: MemoryEntry) -> str:
    document, text, learned = entry.document, _text(entry), day(entry.document.learned_ms)
    if document.place == "findings":
        tags = "".join(f" #{one_line(tag)}" for tag in document.tags)
        return f"- [{entry.trust}] [{learned}] {text}{tags}"
    return f"- [{entry.trust}] [{document.category}] {text} (learned {learned})"


def entry_with_place(entry: MemoryEntry) -> str:
    """An entry, and where it was said."""
    turn = (entry.document.turn or "").rpartition(":")
    where = f"\n  said in chat:{turn[0].partition(':')[2]} message {turn[2]}" if turn[0] else ""
    return dated_line(entry).removeprefix("- ") + where


def _names(text: str) -> list[str]:
    words = [word for word in _NAME.findall(one_line(text)) if len(word) <= WORD_CHARS]
    telling = [word for word in words if len(word) > 2 and content_words(word)]
    return telling or words


def _rest(count: int, words: Sequence[str], limit: int) -> str:
    if not count:
        return ""
    bare, unique = f"({count} left out)", list(dict.fromkeys(filter(None, words)))
    text = f"({count} left out; memory-search finds them by: "
    listed: list[str] = []
    for word in unique:
        if len(text) + len(", ".join([*listed, word])) + len(", ...)") > limit:
            break
        listed.append(word)
    more = ", ..." if len(listed) < len(unique) else ""
    return f"{text}{', '.join(listed)}{more})" if listed else bare


def _without(lines: Iterable[str], known: Iterable[str]) -> list[str]:
    texts = list(known)
    return [line for line in lines if not any(text.startswith(line) for text in texts)]
