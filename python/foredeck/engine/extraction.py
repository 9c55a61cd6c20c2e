"""Asks the host's model after a turn what to remember; without a model, takes the user's stated
rules."""

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
from foredeck.context.state.objects import Objects
from foredeck.context.state.request import Inbox
from foredeck.context.state.session import SessionFolder
from foredeck.engine.asking import SessionAsking
from foredeck.engine.background import Job, SessionEvent
from foredeck.hosts.host import CompleteParams, NoModel
from foredeck.memory.entry import caps_of
from foredeck.memory.trust import User, user_of
from foredeck.model.figures import cut
from foredeck.model.records import ExtractionDocument
from foredeck.regular_files import open_to_read

if TYPE_CHECKING:  # imported with the first turn that is read out: most sessions are short
    from foredeck.memory.entry import MemoryEntry
    from foredeck.memory.extracting import ExtractionMemory, ExtractionResult
    from foredeck.memory.judging import Saying

PRIORITY = -10
MOST_TURNS = 200
"""Turns in one question; an unread session begins with its newest."""
_SHOWN = 100
SEARCH_S = 3.0
"""Seconds of searching files, in a thread."""
MOST_FILES, MOST_BYTES = 20_000, 1_000_000
"""Number of files, and bytes of each."""
_SMALL = bytes(range(256)).lower()
_LEFT_OUT = b"*_`>#|" + string.whitespace.encode()
_SKIPPED = frozenset({".git", "node_modules", ".venv", "__pycache__"})


class Extraction:
    """Reads one session turn by turn, in the background."""

    def __init__(
        self, config: Config, chat: Chat, inbox: Inbox, user: User, session_folder: SessionFolder
    ) -> None:
        self._config, self._chat, self._inbox = config, chat, inbox
        self._user = user
        self._session_folder = session_folder
        self._last: int | None = None
        self._earlier: int | None = None

    @cached_property
    def _memory(self) -> ExtractionMemory:
        # Loads with the first turn that is read out.
        from foredeck.memory.extracting import ExtractionMemory

        caps, by = caps_of(self._config), self._chat.info.id
        return ExtractionMemory(self._chat.store, self._user, caps, by=by)

    def due(self, happened: SessionEvent) -> Iterable[Job]:
        """One question after each run with an answer."""
        if self._earlier is None:
            # The message that the first call answers has no turn yet, and all before it have one.
            self._earlier = self._chat.turns
        if happened == "answer":
            yield Job("extract", self._extract, PRIORITY)

    def close(self) -> None: ...

    async def _extract(self, asking: SessionAsking) -> None:
        # Loads with the first turn that is read out.
        from foredeck.memory.extracting import AskedTurns, read_out, rules_in, texts_of_turns
        from foredeck.memory.judging import is_worth_asking, within_bounds

        store, info, last = self._chat.store, self._chat.info, self._chat.turns
        first = max(self._read_out() + 1, last - MOST_TURNS + 1)
        sayings, tools = texts_of_turns(store, info.id, first, last)
        selected, worth_asking = within_bounds(sayings), is_worth_asking(sayings)
        rules = rules_in(selected)
        if not (worth_asking or rules):
            return
        if await _is_forbidden(asking):
            answer = rules
        elif worth_asking:
            answer = await self._asked(selected, asking)
        else:
            return
        if answer:
            live = (self._chat.turns if self._earlier is None else self._earlier) + 1
            typed = await asyncio.to_thread(_not_copied, info.cwd, tuple(self._inbox.typed))
            project = self._session_folder.project.id
            turns = AskedTurns(info.id, project, first, last, tools, selected, live, typed)
            _judged, result = read_out(self._memory, turns, answer, self._config.memory.accept)
            for line in news_of(result, self._memory.name) if result is not None else ():
                self._inbox.notify(line)
        # Last: what could not be stored is read out again.
        self._last = last

    async def _asked(self, shown: Sequence[Saying], asking: SessionAsking) -> str:
        from foredeck.memory.judging import EXPECTED_TOKENS, MAX_ANSWER_TOKENS, SYSTEM, question

        guard = self._user.vouch(["guard", self._chat.info.id])[:20]
        message = {"role": "user", "content": question(shown, guard)}
        question_params = CompleteParams(
            messages=[message], max_tokens=MAX_ANSWER_TOKENS, system=SYSTEM
        )
        return (await asking.ask("extract", question_params, output_tokens=EXPECTED_TOKENS)).text

    def _read_out(self) -> int:
        if self._last is None:
            extractions = self._chat.store.query("extraction", {"session": self._chat.info.id})
            self._last = max(
                (head.view(ExtractionDocument).last for head in extractions), default=0
            )
        return self._last


async def _is_forbidden(asking: SessionAsking) -> bool:
    try:
        return asking.forbidden(await asking.terms(), wanted=False) is not None
    except NoModel:
        return True


def _not_copied(folder: str, typed: Sequence[str]) -> Sequence[str]:
    """Typed sentences that no project file contains; others may come from a shell or clipboard."""
    # Loads with the first turn that is read out.
    from foredeck.memory.judging import own_sentences

    sentences = [sentence for text in typed for sentence in own_sentences(text)]
    copied = found_in_files(Path(folder), sentences)
    return [sentence for sentence in sentences if sentence not in copied]


def extraction(
    config: Config, objects: Objects, chat: Chat, inbox: Inbox, session_folder: SessionFolder
) -> Extraction | None:
    """The extraction of a session; None if off, in a replay, and in an agent's session, whose
    parent says the same."""
    info, user = objects.info, user_of(config)
    if not config.memory.extract or not info.is_live or user is None:
        return None
    if objects.is_an_agents():
        return None
    return Extraction(config, chat, inbox, user, session_folder)


def news_of(taken: ExtractionResult, name: Callable[[str], str]) -> list[str]:
    """Tells the user what was kept beyond the session, and how to undo it."""
    lines = [
        f'Kept in memory, as you said it: "{_short(entry)}" ({name(entry.id)}; '
        f"/memory delete {name(entry.id)} takes it out)"
        for entry in taken.kept
        if entry.document.place == "global"
    ]
    lines += [
        f'Removed from memory to make room: "{_short(entry)}" ({name(entry.id)})'
        for entry in taken.evicted
        if entry.trust == "user-stated"
    ]
    if count := len(taken.proposed):
        more = "" if count == 1 else f" and {count - 1} more"
        lines.append(f'Worth remembering? "{_short(taken.proposed[0])}"{more}: /memory')
    return lines


def _short(entry: MemoryEntry) -> str:
    return cut(entry.document.fact, _SHOWN)


def found_in_files(folder: Path, texts: Collection[str]) -> set[str]:
    """Texts that occur in files below a folder, ignoring case and line breaks."""
    # Text that is copied from a page or a terminal comes on one line, and without its markup.
    needles = {text: _bare(text.encode(errors="replace")) for text in texts}
    matches: set[str] = set()
    until = monotonic() + SEARCH_S
    for number, path in enumerate(_files_below(folder)):
        if len(matches) == len(needles):
            break
        if number >= MOST_FILES or monotonic() > until:
            return set(needles)
        content = _bare(_beginning(path))
        matches.update(text for text, letters in needles.items() if letters in content)
    return matches


def _bare(text: bytes) -> bytes:
    return text.translate(_SMALL, _LEFT_OUT)


def _files_below(folder: Path) -> Iterator[Path]:
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        yield from (Path(here, name) for name in sorted(names))


def _beginning(path: Path) -> bytes:
    """The beginning of a regular file; never follows links or blocks."""
    try:
        with open_to_read(path, follow=False) as file:
            return file.read(MOST_BYTES)
    except OSError:
        return b""
