"""What was noted of a session, and of the branch at hand; read once, and again where it changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from foredeck.context.state.observed import ObservedStandIns
from foredeck.observations.keeping import BranchNotes, ObservationKeeper
from foredeck.observations.messages import SourceMessage


@dataclass
class SessionNotes:
    """Observations and reflections of a session and of those that it was forked from."""

    keeper: ObservationKeeper
    stand_ins: ObservedStandIns
    _branch: BranchNotes | None = None
    _read_for: tuple[str, int] = ("", 0)
    _seen: frozenset[tuple[str, str]] = field(default_factory=frozenset)

    def on_branch(self, messages: Sequence[SourceMessage]) -> BranchNotes:
        """What of it the branch has whose messages these are."""
        # A list that only grows keeps what was found for its beginning.
        if self._branch is None or not self._is_continued(messages):
            self._branch = self.keeper.read([message.address for message in messages])
            self._read_for = (messages[-1].address if messages else "", len(messages))
        return self._branch

    def _is_continued(self, messages: Sequence[SourceMessage]) -> bool:
        address, length = self._read_for
        if length > len(messages):
            return False
        return length == 0 or messages[length - 1].address == address

    def refresh(self) -> None:
        """Something was written."""
        self.stand_ins.refresh()
        self._branch = None

    def look(self) -> None:
        """Whether somebody else has changed anything: the user, by a command line."""
        store = self.keeper.lease.store
        seen = frozenset(
            (head.id, head.token)
            for session in (self.keeper.session, *self.keeper.ancestors)
            for type in ("observation", "reflection")
            for head in store.query(type, {"session": session})
        )
        if seen != self._seen:
            self._seen = seen
            self.refresh()
