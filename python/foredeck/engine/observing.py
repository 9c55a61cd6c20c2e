"""The observer of a session: what is due, by the amount of new chat."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from foredeck.config import Config
from foredeck.context.messages.items import Item
from foredeck.context.messages.transcript import observable
from foredeck.context.plan.plan import Plan
from foredeck.context.state.chat import Chat, turn_of
from foredeck.context.state.facilities import StandIn
from foredeck.context.state.objects import Objects
from foredeck.context.state.request import Inbox
from foredeck.engine.background import Job, SessionEvent
from foredeck.model.call_values import CHARS_PER_TOKEN
from foredeck.model.observations import Mode, Work
from foredeck.observations.chunks import ChunkRules, SourceMessage, pending_tokens
from foredeck.observations.reading import (
    Observation,
    ObservedBranch,
    StoredNotes,
    stored_notes,
    versions_noted,
)
from foredeck.observations.rules import (
    ModeChoice,
    TimingRules,
    begins,
    guess_mode,
    is_activation_due,
    is_pressing,
    least_pending,
    notes_limit,
    to_condense,
)
from foredeck.store.clock import now_ms
from foredeck.store.store import Store

if TYPE_CHECKING:
    from foredeck.engine.asking import SessionAsking
    from foredeck.observations.keeping import ObservationKeeper


COMPACTED, PRESSING, FIRST, AFTERWARDS = 200, 100, 10, 5
"""Priorities: chat about to be compacted, much chat, other chat, a reflection."""

GUESS = "guess"
"""In place of a mode: guess again."""


class ObservingSettings(NamedTuple):
    """`always`: even where it does not pay. `mode`: None if guessed."""

    always: bool
    rules: TimingRules
    mode: Mode | None


def observing_settings(config: Config) -> ObservingSettings:
    """How a session is observed."""
    section = config.observing
    rules = TimingRules(
        threshold=section.threshold,
        reflection=section.reflection_threshold,
        activation=section.activation,
        block_after=section.block_after,
        chunk=ChunkRules(least=section.buffer_tokens),
        scope=section.scope,
    )
    return ObservingSettings(config.observations == "on", rules, section.mode)


class ChatBefore(NamedTuple):
    """Chat before the user's compaction, kept for a job that would find only the summary."""

    messages: Sequence[SourceMessage]
    mode: ModeChoice
    call: int


def mode_named(name: object) -> Mode | None:
    """The mode of this name, if any."""
    modes: tuple[Mode, ...] = get_args(Mode)
    return next((mode for mode in modes if mode == name), None)


RunJob = Callable[
    ["Observing", "SessionAsking", Work, "ChatBefore | None", bool], Coroutine[Any, Any, None]
]


@dataclass
class Observing:
    """Observes one session in the background.

    `make_keeper` and `run_job` load their modules at the first observation.
    """

    objects: Objects
    chat: Chat
    inbox: Inbox
    settings: ObservingSettings
    sessions: Sequence[str]
    make_keeper: Callable[[], ObservationKeeper]
    run_job: RunJob
    requested: set[Work] = field(default_factory=set)
    at_any_price: bool = False
    """Whether the user accepts any price for the next observation."""
    last: str = ""
    """The last outcome, for the user."""
    not_before: dict[Work, int] = field(default_factory=dict)
    """Tokens from which to retry after a failure."""
    reason: str = ""
    """The recorded reason why no model is asked."""
    has_said_alone: bool = False

    def __post_init__(self) -> None:
        store, rules = self.objects.store, self.settings.rules
        document = self.objects.document()
        self.chosen = None if document is None else mode_named(document.observing_mode)
        """The mode that the user chose, also before a restart."""
        self.sources = BranchSources(self.chat)
        self.notes = SessionNotes(store, self.sessions, rules, lambda: self.mode().mode)

    @cached_property
    def keeper(self) -> ObservationKeeper:
        """Stores observations, each once."""
        return self.make_keeper()

    def due(self, happened: SessionEvent) -> Iterator[Job]:
        if happened in ("answer", "command"):
            self.notes.look()
        waiting = self.pending()
        before = self._chat_before() if happened == "compaction" else None
        if before or "observe" in self.requested or self._is_observation_due(waiting):
            pressing = is_pressing(self.settings.rules, waiting)
            priority = COMPACTED if before else PRESSING if pressing else FIRST
            yield Job("observe", partial(self._work, "observe", happened, before), priority)
        if "reflect" in self.requested or self._is_reflection_due():
            yield Job("reflect", partial(self._work, "reflect", happened, None), AFTERWARDS)

    def close(self) -> None:
        if "keeper" in self.__dict__:
            self.keeper.lease.close()

    async def _work(
        self, work: Work, happened: SessionEvent, before: ChatBefore | None, asking: SessionAsking
    ) -> None:
        await self.run_job(self, asking, work, before, happened in ("call", "tool"))

    @property
    def on_branch(self) -> ObservedBranch:
        """Notes on the current branch."""
        return self.notes.on_branch(self.sources.messages())

    def mode(self) -> ModeChoice:
        if self.chosen is not None:
            return ModeChoice(self.chosen, "user", "you have said so")
        if self.settings.mode is not None:
            return ModeChoice(self.settings.mode, "user", "observing.mode says so")
        return guess_mode(self.sources.messages()[self.on_branch.position.messages :])

    def choose(self, name: str) -> None:
        """Stores the user's mode, or `GUESS`; forks inherit it. Raises `StoreError`."""
        document = self.objects.document()
        if document is not None and document.observing_mode != name:
            changed = document.model_copy(update={"observing_mode": name})
            self.objects.workspace.put(changed.seal())
            if self.chat.log.newest or self.chat.turns:
                self.objects.workspace.commit()
        self.chosen = mode_named(name)

    def tokens(self, text: str) -> int:
        """Tokens of a text, by the current rate."""
        return int(len(text) / self.sources.rate)

    def pending(self) -> int:
        """Unobserved tokens of the branch."""
        return pending_tokens(self.sources.messages(), self.on_branch.position)

    def note_tokens(self) -> int:
        """Tokens of notes that may replace chat."""
        return sum(one.tokens for one in self.on_branch.notes)

    def chat_tokens(self) -> int:
        """Tokens of the chat as sent."""
        return int(self.chat.branch.plan.chars_sent / self.sources.rate)

    def left_tokens(self) -> tuple[int, int]:
        """Tokens of covered messages in the prompt, and of them the observed ones."""
        messages, plan = self.sources.messages(), self.chat.branch.plan
        gone = [i for i in plan.omitted() if i < len(messages)]
        until = self.on_branch.position.messages
        return (
            sum(messages[index].tokens for index in gone),
            sum(messages[index].tokens for index in gone if index < until),
        )

    def has_begun(self) -> bool:
        """Whether the chat was ever long enough for notes, or the user asked."""
        return bool(self.on_branch.placed) or begins(self.chat_tokens(), self.window)

    @property
    def window(self) -> int | None:
        """The model's window in tokens; None if unknown."""
        record = self.chat.newest_record
        return None if record is None else record.model.window

    def _chat_before(self) -> ChatBefore | None:
        if not self.settings.always and not self.has_begun():
            return None
        messages = tuple(self.sources.messages())
        return ChatBefore(messages, self.mode(), self.chat.log.newest)

    def _is_observation_due(self, waiting: int) -> bool:
        rules = self.settings.rules
        if waiting < max(rules.chunk.least, self.not_before.get("observe", 0)):
            return False
        if waiting < least_pending(rules, self.mode().mode, self.note_tokens()):
            return False
        return self.settings.always or self.has_begun()

    def retry_threshold(self, work: Work) -> int:
        """The next `not_before` if this work fails."""
        if work == "observe":
            return 2 * self.pending()
        return self.note_tokens() + notes_limit(self.settings.rules, self.window)

    def _is_reflection_due(self) -> bool:
        if self.note_tokens() < self.not_before.get("reflect", 0):
            return False
        notes = self.on_branch.notes
        return to_condense(self.settings.rules, notes, now_ms(), self.window) > 0


_OURS = "[foredeck]"
"""Begins foredeck's own text in a chat."""


@dataclass(slots=True)
class BranchSources:
    """The current branch's messages, made once while the list only grows."""

    chat: Chat
    _plan: Plan | None = None
    _made: list[SourceMessage] = field(default_factory=list)

    def messages(self) -> Sequence[SourceMessage]:
        plan = self.chat.branch.plan
        if plan is not self._plan or len(self._made) > len(plan):
            self._plan, self._made = plan, []
        if len(self._made) < len(plan):
            self._made += self._new(plan.items, len(self._made))
        return self._made

    @property
    def rate(self) -> float:
        """Characters per token at the newest call."""
        record = self.chat.newest_record
        return CHARS_PER_TOKEN if record is None else record.stats.rate

    def _new(self, items: Sequence[Item], start: int) -> list[SourceMessage]:
        rate = self.rate
        offset = turn_of(self.chat, items[start]) - items[start].turn
        return observable(
            items[start:],
            lambda chars: int(chars / rate),
            cwd=self.chat.info.cwd,
            first_turn=offset + 1,
            is_ours=_is_ours,
        )


def _is_ours(item: Item) -> bool:
    if item.kind != "context":
        return False
    return any(_OURS in str(block.get("text") or "") for block in item.blocks)


@dataclass(slots=True)
class SessionNotes:
    """Observations and reflections of `sessions`, read once; writers call `refresh`."""

    store: Store
    sessions: Sequence[str]
    rules: TimingRules
    mode: Callable[[], Mode] = lambda: "default"
    _stored: StoredNotes | None = None
    _known: Sequence[StandIn] | None = None
    _branch: ObservedBranch | None = None
    _read_for: tuple[str, int] = ("", 0)
    _seen: frozenset[tuple[str, str]] | None = None

    def refresh(self) -> None:
        """Rereads after a change."""
        self._stored = self._known = self._branch = None

    def look(self) -> None:
        """Rereads if another process has changed notes."""
        versions = versions_noted(self.store, self.sessions)
        if versions != self._seen:
            self._seen = versions
            self.refresh()

    def on_branch(self, messages: Sequence[SourceMessage]) -> ObservedBranch:
        """The notes on a branch with these messages."""
        # A list that only grows keeps what was found for its beginning.
        if self._branch is None or not self._is_continued(messages):
            self._branch = self._read().on_branch([message.address for message in messages])
            self._read_for = (messages[-1].address if messages else "", len(messages))
        return self._branch

    def known(self) -> Sequence[StandIn]:
        if self._known is None:
            self._known = [*_stand_ins(self._read())]
        return self._known

    def is_due(self, chat_tokens: int, standing_tokens: int) -> bool:
        """Whether the mode's threshold is reached."""
        return is_activation_due(
            self.rules,
            self.mode(),
            message_tokens=chat_tokens,
            observation_tokens=standing_tokens,
            fits=True,
        )

    def _read(self) -> StoredNotes:
        if self._stored is None:
            self._stored = stored_notes(self.store, self.sessions)
        return self._stored

    def _is_continued(self, messages: Sequence[SourceMessage]) -> bool:
        address, length = self._read_for
        if length > len(messages):
            return False
        return length == 0 or messages[length - 1].address == address


def _stand_ins(stored: StoredNotes) -> Iterator[StandIn]:
    """Observations, then reflections; the last part's notes cover a message observed in parts."""
    by_id = {each.id: each for each in stored.observations}
    for each in stored.observations:
        if not each.is_deleted and (covers := tuple(each.document.covers)):
            text = "\n".join([*_parts_before(each, by_id), each.text])
            task, suggestion = each.document.current_task, each.document.suggestion
            yield StandIn(each.id, "observation", covers, text, task, suggestion)
    for reflection in stored.reflections:
        document = reflection.document
        behind = [by_id[id] for id in document.observations if id in by_id]
        if not reflection.is_deleted and len(behind) == len(document.observations):
            covers = tuple(address for each in behind for address in each.document.covers)
            task, suggestion = document.current_task, document.suggestion
            yield StandIn(reflection.id, "reflection", covers, reflection.text, task, suggestion)


def _parts_before(last: Observation, by_id: Mapping[str, Observation]) -> list[str]:
    part, texts = last.document.part, list[str]()
    before = by_id.get(last.document.previous or "")
    while part is not None and part.start and before is not None:
        part = before.document.part
        texts.insert(0, before.text)
        before = by_id.get(before.document.previous or "")
    return [text for text in texts if text]
