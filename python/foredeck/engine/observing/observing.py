"""The observer of a session: what is due, by how much has been said since it observed last."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple, get_args

from foredeck.config import Config
from foredeck.context.messages.items import Item
from foredeck.context.messages.transcript import observable
from foredeck.context.plan.plan import Plan
from foredeck.context.state.chat import Chat, turn_of
from foredeck.context.state.features import StandIn
from foredeck.context.state.inbox import Inbox
from foredeck.context.state.objects import Objects
from foredeck.engine.background import Job, SessionEvent
from foredeck.model.call_values import CHARS_PER_TOKEN
from foredeck.model.observations import Mode, ModeBy, Work
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
from foredeck.store.protocol import Store, Token

if TYPE_CHECKING:
    from foredeck.engine.asking import SessionAsking
    from foredeck.observations.keeping import ObservationKeeper
    from foredeck.observations.observers import Summarise


COMPACTED, PRESSING, FIRST, AFTERWARDS = 200, 100, 10, 5
"""Priorities: of the observation of chat that the host is about to sum up, of one where much waits,
of any other, of a reflection."""

GUESS = "guess"
"""In place of a mode: the user has gone back to guessing."""


class ObservingSettings(NamedTuple):
    """`always`: not only where it pays (`observations = "on"`). `mode`: None where it is guessed,
    `mode_by`: who else said it."""

    always: bool
    rules: TimingRules
    mode: Mode | None
    mode_by: ModeBy


def observing_settings(config: Config, *, is_subagent: bool) -> ObservingSettings | None:
    """How a session is observed; None where it is not."""
    section = config.observing
    if config.observations == "off" or (is_subagent and not section.subagents):
        return None
    rules = TimingRules(
        threshold=section.threshold,
        reflection=section.reflection_threshold,
        activation=section.activation,
        block_after=section.block_after,
        chunk=ChunkRules(least=section.buffer_tokens),
        scope=section.scope,
    )
    by: ModeBy = "start" if is_subagent else "user"
    return ObservingSettings(config.observations == "on", rules, section.mode, by)


class ChatBefore(NamedTuple):
    """The chat before a compaction that the user has asked for: a job that has to wait would find
    the summary.

    `call`: the newest one then. The prompts of later calls do not show this chat.
    """

    messages: Sequence[SourceMessage]
    mode: ModeChoice
    call: int


def mode_named(name: object) -> Mode | None:
    """The mode of this name; None where there is none."""
    known: tuple[Mode, ...] = get_args(Mode)
    return next((mode for mode in known if mode == name), None)


@dataclass
class Observing:
    """Observes one session in the background.

    `sessions`: its own id, then those that it was forked from. `make_keeper` is called when
    something is to be observed: most sessions end before. `summarise` writes where no model can
    be asked.
    """

    objects: Objects
    chat: Chat
    inbox: Inbox
    settings: ObservingSettings
    sessions: Sequence[str]
    make_keeper: Callable[[], ObservationKeeper]
    summarise: Summarise
    requested: set[Work] = field(default_factory=set)
    """What the user has asked for."""
    at_any_price: bool = False
    """Whether the user wants the next observation whatever it costs."""
    last: str = ""
    """What became of it the last time, for the user."""
    not_before: dict[Work, int] = field(default_factory=dict)
    """After a failure, from how many tokens on that work is tried again: unobserved ones, or those
    of notes where these were to be condensed."""
    reason: str = ""
    """Why no model is asked, as it is on record."""
    has_said_alone: bool = False
    """The user has read that foredeck writes by itself."""

    def __post_init__(self) -> None:
        store, rules = self.objects.store, self.settings.rules
        document = self.objects.document()
        self.chosen = None if document is None else mode_named(document.observing_mode)
        """The mode that the user has said, here or before a restart."""
        self.sources = BranchSources(self.chat)
        self.notes = SessionNotes(store, self.sessions, rules, lambda: self.mode().mode)

    @cached_property
    def keeper(self) -> ObservationKeeper:
        """Who writes down what is observed, once."""
        return self.make_keeper()

    def due(self, happened: SessionEvent) -> Iterator[Job]:
        """See `BackgroundWorker`."""
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
        """See `BackgroundWorker`. The next engine of the session need not wait for the lease."""
        if "keeper" in self.__dict__:
            self.keeper.lease.close()

    async def _work(
        self, work: Work, happened: SessionEvent, before: ChatBefore | None, asking: SessionAsking
    ) -> None:
        # Loads with the first chunk that is observed: an engine starts without what most sessions
        # never need.
        from foredeck.engine.observing.runs import ObservingRun

        run = ObservingRun(self, asking, work, before)
        await run.run(under_way=happened in ("call", "tool"))

    @property
    def on_branch(self) -> ObservedBranch:
        """What was noted of the branch at hand."""
        return self.notes.on_branch(self.sources.messages())

    def mode(self) -> ModeChoice:
        """What kind of work is at hand, and who says so."""
        if self.chosen is not None:
            return ModeChoice(self.chosen, "user", "you have said so")
        if self.settings.mode is not None:
            return ModeChoice(self.settings.mode, self.settings.mode_by, "observing.mode says so")
        return guess_mode(self.sources.messages()[self.on_branch.position.messages :])

    def choose(self, name: str) -> None:
        """Take the user's word for the mode, or `GUESS`, and keep it: at once where the session is
        stored, else with its first call. Its forks take it along. Raises `StoreError`."""
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
        """Tokens of the branch that are not observed yet."""
        return pending_tokens(self.sources.messages(), self.on_branch.position)

    def note_tokens(self) -> int:
        """Tokens of the notes that may replace chat."""
        return sum(one.tokens for one in self.on_branch.notes)

    def chat_tokens(self) -> int:
        """Tokens of the chat as it goes out."""
        return int(self.chat.branch.plan.chars_sent / self.sources.rate)

    def left_tokens(self) -> tuple[int, int]:
        """Tokens of the messages that something covers in the prompt, and how many of these
        have been observed."""
        messages, plan = self.sources.messages(), self.chat.branch.plan
        gone = [i for i in plan.omitted() if i < len(messages)]
        until = self.on_branch.position.messages
        return (
            sum(messages[index].tokens for index in gone),
            sum(messages[index].tokens for index in gone if index < until),
        )

    def has_begun(self) -> bool:
        """Whether the chat is, or has been, so long that notes pay; or the user has asked for some
        of it."""
        return bool(self.on_branch.placed) or begins(self.chat_tokens(), self.window)

    @property
    def window(self) -> int | None:
        """Of the model, in tokens; None where it is not known."""
        record = self.chat.newest_record
        return None if record is None else record.model.window

    def _chat_before(self) -> ChatBefore | None:
        """What the user has compacted, where it is observed."""
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
        """The `not_before` of work that is begun now and comes to nothing: as much again."""
        if work == "observe":
            return 2 * self.pending()
        return self.note_tokens() + notes_limit(self.settings.rules, self.window)

    def _is_reflection_due(self) -> bool:
        if self.note_tokens() < self.not_before.get("reflect", 0):
            return False
        notes = self.on_branch.notes
        return to_condense(self.settings.rules, notes, now_ms(), self.window) > 0


_OURS = "[foredeck]"
"""Begins what foredeck itself writes into a chat."""


@dataclass(slots=True)
class BranchSources:
    """The messages of the branch at hand; made once each, while the list only grows.

    Their tokens are counted once, by the rate at that time, so that what is pending is not counted
    anew.
    """

    chat: Chat
    _plan: Plan | None = None
    _made: list[SourceMessage] = field(default_factory=list)

    def messages(self) -> Sequence[SourceMessage]:
        """All of them, in the order of the list. It grows with that."""
        plan = self.chat.branch.plan
        if plan is not self._plan or len(self._made) > len(plan):
            self._plan, self._made = plan, []
        if len(self._made) < len(plan):
            self._made += self._new(plan.items, len(self._made))
        return self._made

    @property
    def rate(self) -> float:
        """Characters a token, as the newest call has it."""
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
    """Whether foredeck has written it: a summary of its own, which the host shows as context."""
    if item.kind != "context":
        return False
    return any(_OURS in str(block.get("text") or "") for block in item.blocks)


@dataclass(slots=True)
class SessionNotes:
    """Observations and reflections of `sessions`: a session's own id, then those that it was
    forked from. They are read once; who writes more calls `refresh`.

    These are the session's `StandIns`. `mode`: what kind of work is done, which decides how long
    chat stays as it is.
    """

    store: Store
    sessions: Sequence[str]
    rules: TimingRules
    mode: Callable[[], Mode] = lambda: "default"
    _stored: StoredNotes | None = None
    _known: Sequence[StandIn] | None = None
    _branch: ObservedBranch | None = None
    _read_for: tuple[str, int] = ("", 0)
    """The last message that `_branch` was made for, and how many there were."""
    _seen: frozenset[tuple[str, Token]] | None = None

    def refresh(self) -> None:
        """Something was stored, edited or deleted."""
        self._stored = self._known = self._branch = None

    def look(self) -> None:
        """Refresh where another process has changed anything: the user's, by a command line."""
        seen = versions_noted(self.store, self.sessions)
        if seen != self._seen:
            self._seen = seen
            self.refresh()

    def on_branch(self, messages: Sequence[SourceMessage]) -> ObservedBranch:
        """What the branch with these messages has of it."""
        # A list that only grows keeps what was found for its beginning.
        if self._branch is None or not self._is_continued(messages):
            self._branch = self._read().on_branch([message.address for message in messages])
            self._read_for = (messages[-1].address if messages else "", len(messages))
        return self._branch

    def known(self) -> Sequence[StandIn]:
        """See `StandIns`."""
        if self._known is None:
            self._known = [*_stand_ins(self._read())]
        return self._known

    def is_due(self, chat_tokens: int, standing_tokens: int) -> bool:
        """See `StandIns`: by the threshold of the mode."""
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
    """Observations, then reflections. A message that was observed in parts is covered by the last
    of them; what was noted of the others comes before it."""
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
    """What was noted of the parts of a long message that come before the last one, in order."""
    part, texts = last.document.part, list[str]()
    before = by_id.get(last.document.previous or "")
    while part is not None and part.start and before is not None:
        part = before.document.part
        texts.insert(0, before.text)
        before = by_id.get(before.document.previous or "")
    return [text for text in texts if text]
