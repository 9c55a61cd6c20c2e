"""What other sessions of a project have noted: a bounded block for those that share it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from foredeck.model.observations import Remark
from foredeck.model.quoting import block, one_line
from foredeck.observations.excerpt import WallTime
from foredeck.observations.reading import Observation, latest_in_project
from foredeck.observations.texts import text_of
from foredeck.store.protocol import Store
from foredeck.store.sessions import private_sessions

MOST_CHARS = 2400
"""Of the block. The head may be longer by as much, so that other sections lose no room to it."""
MOST_SESSIONS = 5
_SHORT = 8


@dataclass(frozen=True, slots=True)
class OtherSessionsSection:
    """The newest remarks of the project's other sessions, for the head.

    Nothing of the session's own past is in it (`own`: the session and those that it was forked
    from), and nothing of private sessions. It only says what others did: the model must not go on
    with another session's work.
    """

    store: Store
    project: str
    own: frozenset[str]
    clock: WallTime = field(default_factory=WallTime)
    name: str = "noted in other sessions of this project; not part of this one"
    extra_chars: int = MOST_CHARS

    def text(self, limit: int) -> str:
        """As many of the newest as fit, those of one session together, the latest session last."""
        room = min(limit, MOST_CHARS)
        blocks: list[str] = []
        hidden = self.own | {*private_sessions(self.store)}
        for session, observations in latest_in_project(
            self.store, self.project, hidden, MOST_SESSIONS
        ):
            heading = f"session {one_line(session[:_SHORT])}"
            notes = self._newest(observations, room - len(heading) - 1)
            if not notes:
                break
            blocks.append(f"{heading}\n{notes}")
            room -= len(blocks[-1]) + 1
        return "\n".join(reversed(blocks))

    def _newest(self, observations: list[Observation], room: int) -> str:
        kept: list[Remark] = []
        text = ""
        for remark in _newest_first(observations):
            longer = block(text_of([remark, *kept], self.clock))
            if len(longer) > room:
                break
            kept, text = [remark, *kept], longer
        return text


def _newest_first(observations: list[Observation]) -> Iterator[Remark]:
    """What matters of them beyond their own session: decisions and results, not steps."""
    for observation in reversed(observations):
        for remark in reversed(observation.document.remarks):
            if remark.priority != "low":
                yield remark
