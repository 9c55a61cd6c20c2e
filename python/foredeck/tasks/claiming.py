"""Who may claim a task, and for how long a claim holds.

A claim by a session is a lease: it ends when the session does, or after two hours in which the
session did nothing. A claim by a person holds until it is released. A task that still waits for
others, or is closed, cannot be claimed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from foredeck.errors import ToolError
from foredeck.model.documents import Provenance
from foredeck.model.figures import some_of
from foredeck.model.quoting import one_line
from foredeck.model.tasks import ClaimDocument, ClaimState, claim_id
from foredeck.store.clock import HOUR_MS
from foredeck.store.protocol import Batch, Store
from foredeck.tasks.board import Board, Task

LEASE_MS = 2 * HOUR_MS
_SHORT = 8
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Actor:
    """Who does something to a task. `session`: the agent's, or the one that a person sits at;
    None on the command line. `name`: the person's, None for an agent."""

    session: str | None
    name: str | None = None

    @property
    def generator(self) -> Literal["agent", "human"]:
        """For the provenance of what this one writes."""
        return "agent" if self.name is None else "human"

    @property
    def origin(self) -> str:
        """As `generator`."""
        return self.session or self.name or "foredeck"

    @property
    def assignee(self) -> str:
        """Who works on what this one claims."""
        return self.session or self.name or "somebody"

    def lease_ms(self, now_ms: int) -> int | None:
        """Until when a claim holds that is made now."""
        # A session may end without a word, a person comes back: theirs holds until it is released.
        return None if self.session is None else now_ms + LEASE_MS


def is_own(task: Task, actor: Actor) -> bool:
    """Whether the claim of a task, held or ended, is this one's."""
    return task.status == "in_progress" and task.assignee == actor.assignee


def holds(task: Task, actor: Actor, now_ms: int) -> bool:
    """Whether this one has a claim of the task that has not ended: no other may claim it."""
    return is_own(task, actor) and task.is_held(now_ms)


def refusal(board: Board, task: Task, actor: Actor, now_ms: int) -> ToolError | None:
    """Why a task cannot be claimed, and what to do instead; None where it can."""
    name = board.names.name(task.id)
    if task.is_closed:
        reason = f" ({task.close_reason})" if task.close_reason else ""
        return ToolError(
            f"{name} is closed{reason}.",
            'To work on it again, update it with status "open" first.',
            "To reopen it: `{} open TASK`.",
        )
    if is_own(task, actor):
        # Also after its claim has ended: the task stays in progress, and its session may go on
        # with it until another claims it.
        return None
    if task.is_held(now_ms):
        until = until_of(task)
        return ToolError(
            f"Already claimed by {holder(task)}{until}.",
            "The action ready lists others.",
            "`{} list` shows others.",
        )
    if blockers := list(board.open_blockers(task)):
        named = [f"{board.names.name(t.id)} {t.called}" for t in blockers]
        some = some_of(named, _MOST_NAMED, "; ")
        return ToolError(f"Task is blocked by open dependencies: {some}. Do these first.")
    return None


def holder(task: Task) -> str:
    """Who has claimed a task, in words."""
    if task.session is not None:
        return f"session {short(task.session)}"
    return one_line(task.assignee or "somebody")


def short(session: str) -> str:
    """A session's id as a line shows it: the start of it, which the command line takes."""
    return session[:_SHORT]


def until_of(task: Task) -> str:
    """Until when a claim holds, as the end of a line; empty where there is none."""
    return "" if task.lease_ms is None else f" until {moment(task.lease_ms)}"


def moment(time_ms: int) -> str:
    """A time to the minute: `2026-05-03 14:05 UTC`."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


# Claims that are made while the database which decides them is away.
#
# Such a claim does not touch the task: it is a note of the session's own, on this machine. Once the
# database answers, the task is claimed as any other is, and the first has it. So no version that
# comes late can take a task from its owner.


def pending_claim(store: Store, session: str) -> str | None:
    """The task that a session has claimed provisionally."""
    head = store.head(claim_id(session))
    if head is None or head.view(ClaimDocument).state != "pending":
        return None
    return head.view(ClaimDocument).task


def note_claim(store: Store, session: str, task: str, state: ClaimState, time_ms: int) -> None:
    """Record that a session's claim of `task` is `pending`, or what became of it."""
    claim = ClaimDocument(
        id=claim_id(session),
        session=session,
        task=task,
        state=state,
        time_ms=time_ms,
        provenance=Provenance(origin=session, generator="agent"),
    )
    store.commit(Batch(puts=[claim.seal()]))
