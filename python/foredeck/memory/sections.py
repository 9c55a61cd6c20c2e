"""Memory in the head, a line each with its trust, and whether what it rests on has changed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import file_digest
from pathlib import Path

from foredeck.errors import ToolError
from foredeck.memory.entry import MemoryEntry, MemoryRefused
from foredeck.memory.words import content_words, says_it_lasts
from foredeck.model.figures import whole_lines
from foredeck.model.memory import Ground, MemoryDocument
from foredeck.model.quoting import block, one_line
from foredeck.regular_files import open_to_read, read_text
from foredeck.sources.filesystem import FilesystemMap
from foredeck.sources.git import Repository, repository
from foredeck.sources.projects import find_git
from foredeck.store.store import Store

_COMMIT = "git:"
_State = tuple[int, int, int]


class GroundReader:
    """Checks entries' grounds from one folder."""

    # What was found of a file is kept until that changes, so that this can be asked at every call.

    def __init__(self, store: Store, filesystems: FilesystemMap) -> None:
        self._store = store
        self._filesystems = filesystems
        self._files: dict[str, tuple[_State, str]] = {}
        self._commits: dict[tuple[str, str], tuple[_State | None, bool]] = {}

    def take(self, names: Iterable[str]) -> list[Ground]:
        """Grounds by name: paths, or `git:COMMIT` of this repository. Raises `MemoryRefused`."""
        return [self._commit(n) if n.startswith(_COMMIT) else self._file(n) for n in names]

    def again(self, grounds: Iterable[Ground]) -> list[Ground]:
        """The same grounds now, without missing ones."""
        current = []
        for ground in grounds:
            version = self._version(ground.path) if ground.kind == "file" else None
            if ground.kind == "commit" and self._has_commit(ground):
                current.append(ground)
            elif version is not None:
                current.append(ground.model_copy(update={"version": version}))
        return current

    def moved(self, grounds: Iterable[Ground]) -> list[Ground]:
        """Grounds that changed."""
        return [ground for ground in grounds if not self._holds(ground)]

    def _holds(self, ground: Ground) -> bool:
        if ground.kind == "file":
            return self._version(ground.path) == ground.version
        return self._has_commit(ground)

    def _file(self, name: str) -> Ground:
        path = self._filesystems.absolute(name)
        version = self._version(path)
        if version is None:
            raise MemoryRefused(f"{path} is no file that can be read: there is nothing to pin.")
        return Ground(path=path, version=version)

    def _version(self, path: str) -> str | None:
        """SHA-256 of a file; None without it."""
        # What cannot be reached from here, such as a file in a container, is as the store knows it.
        location = self._filesystems.locate(path)
        if location.local is None:
            head = self._store.head(location.object_id)
            return None if head is None else head.fields.get("source_hash")
        try:
            state = _state_of(location.local)
            cached = self._files.get(location.local)
            if cached is None or cached[0] != state:
                with open_to_read(location.local) as file:
                    cached = state, file_digest(file, "sha256").hexdigest()
                self._files[location.local] = cached
        except OSError:
            return None
        return cached[1]

    def _commit(self, name: str) -> Ground:
        folder = self._filesystems.cwd
        try:
            with self._repository(folder) as opened:
                commit = opened.commit(name.removeprefix(_COMMIT))
        except ToolError as error:
            raise MemoryRefused(str(error)) from error
        return Ground(kind="commit", path=folder, version=commit)

    def _has_commit(self, ground: Ground) -> bool:
        # Git is asked again once it has noted that something else is checked out: it is a process.
        here = self._filesystems.locate(ground.path).local
        if here is None:
            return True  # nobody here can tell
        key, state = (ground.path, ground.version), _last_move(here)
        cached = self._commits.get(key)
        if cached is None or state is None or cached[0] != state:
            try:
                with self._repository(ground.path) as opened:
                    cached = state, opened.contains(ground.version)
            except ToolError:
                cached = state, False
            self._commits[key] = cached
        return cached[1]

    def _repository(self, folder: str) -> AbstractContextManager[Repository]:
        local = self._filesystems.locate(folder).local
        if local is None:
            raise ToolError(f"{folder} cannot be reached from here.")
        return repository(local)


def names_of(grounds: Iterable[Ground]) -> list[str]:
    """What people call grounds."""
    return [g.path if g.kind == "file" else f"git:{g.version[:12]}" for g in grounds]


def _state_of(path: str) -> _State:
    status = Path(path).stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _last_move(folder: str) -> _State | None:
    """When git last noted a checkout, if known."""
    git_folder = find_git(folder, FilesystemMap("", cwd=folder))
    try:
        own = None if git_folder is None else git_folder.own
        return None if own is None else _state_of(str(Path(own, "logs", "HEAD")))
    except OSError:
        return None


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

    def rules(self) -> list[MemoryEntry]:
        """What the user has stated for good."""
        return [entry for entry in self._sorted_out()[0] if is_rule(entry)]

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
