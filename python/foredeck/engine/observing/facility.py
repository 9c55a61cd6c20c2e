"""The observer of an opened session: made where observing is switched on."""

from __future__ import annotations

import logging
from typing import cast

from foredeck.config import Config
from foredeck.context.state.session import Session
from foredeck.context.window.compactions import SummaryRequest, summary_of
from foredeck.context.window.transcript import split_turns
from foredeck.engine.observing.observing import Observing
from foredeck.engine.observing.others import project_id
from foredeck.engine.observing.settings import observing_settings
from foredeck.errors import StoreError
from foredeck.model.documents import session_object_id
from foredeck.observations.chunks import Chunk
from foredeck.observations.keeping import ObservationKeeper
from foredeck.observations.lease import ObservingLease
from foredeck.store.protocol import LocalStore

log = logging.getLogger(__name__)

SUMMARY_CHARS = 8000
"""Longest summary that stands in the place of a model's observation."""


def make_observing(config: Config, session: Session) -> Observing | None:
    """The observer; None where it is switched off, in a replay, and for a subagent.

    From here on the session's prompts may have notes in the place of chat. What an engine that was
    killed has left is cleared, and told.
    """
    if not session.is_live:
        return None
    settings = observing_settings(config, is_subagent=_is_subagent(session))
    if settings is None:
        return None
    rules, project = settings.rules, project_id(config, session)
    key = session.id if rules.scope == "thread" else project
    lease = ObservingLease(cast("LocalStore", session.store), key, rules.scope)
    keeper = ObservationKeeper(lease, session.id, sorted(session.ancestors), project, rules)
    observing = Observing(session, settings, keeper, lambda chunk: _summary(session, chunk))
    session.stand_ins = observing.stand_ins
    _clear_stale(session, lease)
    return observing


def _is_subagent(session: Session) -> bool:
    head = session.workspace.head(session_object_id(session.id))
    return head is not None and head.fields.get("started_by") is not None


def _clear_stale(session: Session, lease: ObservingLease) -> None:
    try:
        stale = lease.clear_stale()
    except StoreError as error:
        log.info("whether an observation was cut off is not known: %s", error)
        return
    if stale is not None:
        log.warning("%s", stale.to_json())
        session.pending.user_messages.append(f"foredeck: {stale}")


def _summary(session: Session, chunk: Chunk) -> str:
    """Of the messages of a chunk that lie on the branch at hand."""
    covered = {message.address for message in chunk.messages}
    items = [i for i in session.branch.conversation.items if i.key.address in covered]
    if not items:
        return ""
    first = chunk.messages[0].turn
    turns = split_turns(items, first + (items[0].kind != "user"))
    return summary_of(session, turns, 0, SummaryRequest("window", SUMMARY_CHARS, 0), None, ()).long
