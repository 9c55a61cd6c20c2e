"""After a turn: what of it is worth remembering, asked of the host's model in the background.

What the model answers is judged by whose words it is made of (`memory/judging.py`); what would
outlive the session and is not the user's own sentence waits for their word.
"""

from __future__ import annotations

import asyncio
import os
import string
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from foredeck.config import Config
from foredeck.context.state.chat import Chat
from foredeck.context.state.inbox import Inbox
from foredeck.context.state.objects import Objects
from foredeck.context.state.opening import SessionFolder
from foredeck.engine.asking import SessionAsking
from foredeck.engine.background import Job, SessionEvent
from foredeck.hosts.host import CompleteParams
from foredeck.memory.entry import caps_of
from foredeck.memory.trust import User, user_of
from foredeck.model.figures import cut
from foredeck.model.records import ExtractionDocument
from foredeck.regular_files import open_to_read

if TYPE_CHECKING:  # imported with the first turn that is read out: most sessions are short
    from foredeck.memory.entry import MemoryEntry
    from foredeck.memory.extracting import ExtractionMemory, ExtractionResult

PRIORITY = -10
"""Observations keep the prompt within its window; what is remembered can wait."""
MOST_TURNS = 200
"""In one question: a session that was never read out begins with its newest."""
_SHOWN = 100
"""Characters of a fact in a line to the user."""
SEARCH_S = 3.0
"""How long files are searched for what was typed; in a thread, and nothing waits for it."""
MOST_FILES, MOST_BYTES = 20_000, 1_000_000
"""How many files are read, and bytes of each."""
_SMALL = bytes(range(256)).lower()
_LEFT_OUT = b"*_`>#|" + string.whitespace.encode()
_SKIPPED = frozenset({".git", "node_modules", ".venv", "__pycache__"})


class Extraction:
    """Reads out one session, turn by turn. A worker of the background."""

    def __init__(
        self, config: Config, chat: Chat, inbox: Inbox, user: User, project: str | None
    ) -> None:
        self._config, self._chat, self._inbox = config, chat, inbox
        self._user = user
        self._project = project
        self._last: int | None = None
        """Number of the last turn that was read out; None: not read yet."""
        self._earlier: int | None = None
        """Turns that were there before the first call of this process; None before that call."""

    @cached_property
    def _memory(self) -> ExtractionMemory:
        # Loads with the first turn that is read out.
        from foredeck.memory.extracting import ExtractionMemory

        caps, by = caps_of(self._config), self._chat.info.id
        return ExtractionMemory(self._chat.store, self._user, caps, by=by)

    def due(self, happened: SessionEvent) -> Iterable[Job]:
        """One question after each run that has ended with an answer."""
        if self._earlier is None:
            # The message that the first call answers has no turn yet, and all before it have one.
            self._earlier = self._chat.turns
        if happened == "answer":
            yield Job("extract", self._extract, PRIORITY)

    def close(self) -> None:
        """See `BackgroundWorker`: nothing is held."""

    async def _extract(self, asking: SessionAsking) -> None:
        # Loads with the first turn that is read out.
        from foredeck.memory.extracting import AskedTurns, read_out, texts_of_turns
        from foredeck.memory.judging import (
            EXPECTED_TOKENS,
            MAX_ANSWER_TOKENS,
            SYSTEM,
            is_worth_asking,
            question,
            within_bounds,
        )

        store, info, last = self._chat.store, self._chat.info, self._chat.turns
        first = max(self._read_out() + 1, last - MOST_TURNS + 1)
        sayings, tools = texts_of_turns(store, info.id, first, last)
        if not is_worth_asking(sayings):
            return
        shown = within_bounds(sayings)
        guard = self._user.vouch(["guard", info.id])[:20]
        message = {"role": "user", "content": question(shown, guard)}
        asked = CompleteParams(messages=[message], max_tokens=MAX_ANSWER_TOKENS, system=SYSTEM)
        answer = await asking.ask("extract", asked, output_tokens=EXPECTED_TOKENS)
        live = (self._chat.turns if self._earlier is None else self._earlier) + 1
        typed = await asyncio.to_thread(_not_copied, info.cwd, tuple(self._inbox.typed))
        turns = AskedTurns(info.id, self._project, first, last, tools, shown, live, typed)
        _judged, taken = read_out(self._memory, turns, answer.text, self._config.memory.accept)
        self._last = last
        for line in news_of(taken, self._memory.name) if taken is not None else ():
            self._inbox.notify(line)

    def _read_out(self) -> int:
        if self._last is None:
            done = self._chat.store.query("extraction", {"session": self._chat.info.id})
            self._last = max((head.view(ExtractionDocument).last for head in done), default=0)
        return self._last


def _not_copied(folder: str, typed: Sequence[str]) -> Sequence[str]:
    """The sentences that the user typed, but for those that are in a file of the project: a shell
    (`pi -p "$(cat issue.md)"`), a front end or the clipboard may have brought them."""
    # Loads with the first turn that is read out.
    from foredeck.memory.judging import own_sentences

    sentences = [sentence for text in typed for sentence in own_sentences(text)]
    copied = found_in_files(Path(folder), sentences)
    return [sentence for sentence in sentences if sentence not in copied]


def extraction(
    config: Config, objects: Objects, chat: Chat, inbox: Inbox, session_folder: SessionFolder
) -> Extraction | None:
    """Reads out an opened session; None where that is switched off, in a replay, and in a session
    that an agent has started: what is said in it is in the one that started it, too."""
    info, user = objects.info, user_of(config)
    if not config.memory.extract or not info.is_live or user is None:
        return None
    if objects.is_an_agents():
        return None
    return Extraction(config, chat, inbox, user, session_folder.project.id)


def news_of(taken: ExtractionResult, name: Callable[[str], str]) -> list[str]:
    """Lines for the user: everything that outlives the session, and how to undo it."""
    lines = [
        f'Kept in memory, as you said it: "{_short(entry)}" ({name(entry.id)}; '
        f"/memory delete {name(entry.id)} takes it out)"
        for entry in taken.kept
        if entry.document.place == "global"
    ]
    if count := len(taken.proposed):
        more = "" if count == 1 else f" and {count - 1} more"
        lines.append(f'Worth remembering? "{_short(taken.proposed[0])}"{more}: /memory')
    return lines


def _short(entry: MemoryEntry) -> str:
    return cut(entry.document.fact, _SHOWN)


def found_in_files(folder: Path, texts: Collection[str]) -> set[str]:
    """Those of some texts that are in a file below a folder, in whatever case of letters, over
    however many lines. All of them, where there is more to read than the bounds allow."""
    # Text that is copied from a page or a terminal comes on one line, and without its markup.
    wanted = {text: _bare(text.encode(errors="replace")) for text in texts}
    found: set[str] = set()
    until = monotonic() + SEARCH_S
    for number, path in enumerate(_files_below(folder)):
        if len(found) == len(wanted):
            break
        if number >= MOST_FILES or monotonic() > until:
            return set(wanted)
        held = _bare(_beginning(path))
        found.update(text for text, letters in wanted.items() if letters in held)
    return found


def _bare(text: bytes) -> bytes:
    """In small letters, without markup and spaces."""
    return text.translate(_SMALL, _LEFT_OUT)


def _files_below(folder: Path) -> Iterator[Path]:
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        yield from (Path(here, name) for name in sorted(names))


def _beginning(path: Path) -> bytes:
    """Of a regular file, never of what a link leads to or of what could block."""
    try:
        with open_to_read(path, follow=False) as file:
            return file.read(MOST_BYTES)
    except OSError:
        return b""
