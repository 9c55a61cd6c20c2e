"""Claims that are made while the database which decides them is away.

Such a claim does not touch the task: it is a note of the session's own, on this machine. Once the
database answers, the task is claimed as any other is, and the first has it. So no version
that comes late can take a task from its owner.
"""

from __future__ import annotations

from foredeck.model.documents import Provenance
from foredeck.model.tasks import ClaimDocument, ClaimState, claim_id
from foredeck.store.protocol import Batch, Store


def pending_claim(store: Store, session: str) -> str | None:
    """The task that a session has claimed provisionally."""
    head = store.head(claim_id(session))
    if head is None or head.fields["state"] != "pending":
        return None
    return str(head.fields["task"])


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
