"""A session whose chat is observed, with observers that write what a test wants."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC

from foredeck.model.observations import ObservationDocument, ReflectionDocument
from foredeck.observations.chunks import (
    Chunk,
    ChunkRules,
    Position,
    SourceMessage,
    WallTime,
    next_chunk,
)
from foredeck.observations.keeping import ObservationKeeper
from foredeck.observations.lease import ObservingLease
from foredeck.observations.observers import AskedQuestion, ModelObserver, ModelReply
from foredeck.observations.reading import Observation, stored_notes
from foredeck.observations.rules import ModeChoice, TimingRules
from foredeck.store.store import Store
from observations.chat import START_MS, rounds, user

CLOCK = WallTime(UTC)
RULES = TimingRules(chunk=ChunkRules(least=2000, most=4000))
MODE = ModeChoice("default", "guess", "no kind of work stands out")


def count(text: str) -> int:
    return len(text) // 4


def block(*notes: str, task: str = "") -> str:
    """An answer with these notes, each `priority category: text`."""
    lines = "\n".join(f"- 09:20 {note}" for note in notes)
    current = f"<current-task>{task}</current-task>\n" if task else ""
    return f"<observations>\n2026-05-03\n{lines}\n</observations>\n{current}"


@dataclass
class Asked:
    """A model that gives these answers, one after the other, and the last of them again."""

    answers: list[str | ModelReply | Exception]
    questions: list[AskedQuestion] = field(default_factory=list)
    before: Callable[[], Awaitable[None]] | None = None

    async def __call__(self, question: AskedQuestion) -> ModelReply:
        self.questions.append(question)
        if self.before is not None:
            await self.before()
        found = self.answers[min(len(self.questions), len(self.answers)) - 1]
        if isinstance(found, Exception):
            raise found
        return found if isinstance(found, ModelReply) else ModelReply(found, model="test/model")


def observer(*answers: str | ModelReply | Exception) -> tuple[ModelObserver, Asked]:
    asked = Asked([*answers])
    return ModelObserver(asked, count, CLOCK, RULES.chunk), asked


@dataclass
class Time:
    now: int = START_MS

    def __call__(self) -> int:
        return self.now


def keeper(
    store: Store, owner: str = "one", *, session: str = "s", time: Time | None = None
) -> ObservationKeeper:
    """By default somebody of whose machine nothing is known here."""
    lease = ObservingLease(store, session, owner=f"elsewhere/1/{owner}", clock=time or Time())
    return ObservationKeeper(lease, session, project="project", rules=RULES)


def pick(messages: Sequence[SourceMessage], position: Position) -> Chunk | None:
    return next_chunk(messages, position, RULES.chunk)


def kept(store: Store, session: str = "s") -> list[Observation]:
    return [*stored_notes(store, [session]).observations]


NOTES = block("medium change: Agent looked at src/c0.py", task="Look at all.")


def observe(
    store: Store, count: int = 3, *answers: str, owner: str = "one"
) -> ObservationDocument | None:
    writer, _ = observer(*(answers or (NOTES,)))
    chat = [user("look at all of them"), *rounds(count)]
    return asyncio.run(keeper(store, owner).observe(chat, pick, writer, MODE))


def noted(store: Store, chunks: int, session: str = "s") -> list[SourceMessage]:
    """A chat of so many chunks that are observed, with nine remarks each."""
    chat = [user("look at all of them")]
    for number in range(1, chunks + 1):
        notes = [f"medium change: Agent looked at src/c{n}.py, step {number}" for n in range(9)]
        chat = [user("look at all of them"), *rounds(number * 3)]
        writer, _ = observer(block(*notes))
        asyncio.run(keeper(store, session=session).observe(chat, pick, writer, MODE))
    return chat


def reflect(
    store: Store, chat: list[SourceMessage], *answers: str, age_ms: int = 0
) -> tuple[ReflectionDocument, list[str]]:
    """What comes of it so much later, and what the model was told each time."""
    writer, asked = observer(*answers)
    one = keeper(store, time=Time(START_MS + age_ms))
    made = asyncio.run(one.reflect(chat, writer, asked=True))
    assert made is not None
    return made, [question.system for question in asked.questions]
