"""What was noted of an open session: what its branch has of it, and what may replace chat."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from foredeck.context.state.features import StandIn
from foredeck.model.observations import Mode
from foredeck.observations.chunks import SourceMessage
from foredeck.observations.reading import (
    Observation,
    ObservedBranch,
    StoredNotes,
    stored_notes,
    versions_noted,
)
from foredeck.observations.timing import TimingRules, is_activation_due
from foredeck.store.protocol import Store, Token


@dataclass(slots=True)
class SessionNotes:
    """Observations and reflections of `sessions`: a session's own id, then those that it was
    forked from. They are read once; whoever writes more calls `refresh`.

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
