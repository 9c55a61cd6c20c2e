"""Observations of an opened session: its observer, and what other sessions have noted."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from foredeck.config import Config
from foredeck.context.state.chat import Branch, Chat
from foredeck.context.state.inbox import Inbox
from foredeck.context.state.objects import Objects, SessionInfo
from foredeck.context.state.opening import SessionFolder
from foredeck.context.window.compactions import SummaryRequest, summary_of
from foredeck.context.window.transcript import split_turns
from foredeck.engine.observing.observing import Observing, observing_settings
from foredeck.errors import StoreError
from foredeck.model.documents import session_object_id
from foredeck.model.observations import observing_id
from foredeck.observations.chunks import Chunk
from foredeck.observations.reading import OtherSessionsSection
from foredeck.observations.timing import TimingRules
from foredeck.store.protocol import LocalStore, Store

if TYPE_CHECKING:
    from foredeck.observations.keeping import ObservationKeeper

log = logging.getLogger(__name__)

SUMMARY_CHARS = 8000
"""Longest summary in place of a model's observation."""


def make_observing(
    config: Config, objects: Objects, chat: Chat, inbox: Inbox, session_folder: SessionFolder
) -> Observing | None:
    """The observer; None where it is switched off, in a replay, and for a subagent.

    From here on the session's prompts may have notes in place of chat. What an engine that was
    killed has left is cleared, with a word to the user.
    """
    info = objects.info
    if config.observations == "off" or not info.is_live:
        return None
    settings = observing_settings(config, is_subagent=_is_subagent(objects))
    store = objects.store.local
    if settings is None or store is None:
        return None
    rules, project = settings.rules, session_folder.project.id
    key = info.id if rules.scope == "thread" else project
    sessions = (info.id, *sorted(info.ancestors))
    observing = Observing(
        objects,
        chat,
        inbox,
        settings,
        sessions,
        lambda: _keeper(info, store, key, project, rules),
        lambda chunk: _summary(objects, chat.branch, chunk),
    )
    _clear_stale(objects.store, inbox, observing, key)
    return observing


def _keeper(
    info: SessionInfo, store: LocalStore, key: str, project: str, rules: TimingRules
) -> ObservationKeeper:
    # Not at the top: most sessions end before there is anything to observe.
    from foredeck.observations.keeping import ObservationKeeper
    from foredeck.observations.lease import ObservingLease

    lease = ObservingLease(store, key, rules.scope)
    return ObservationKeeper(lease, info.id, sorted(info.ancestors), project, rules)


def _is_subagent(objects: Objects) -> bool:
    head = objects.workspace.head(session_object_id(objects.info.id))
    return head is not None and head.fields.get("started_by") is not None


def _clear_stale(store: Store, inbox: Inbox, observing: Observing, key: str) -> None:
    try:
        held = store.head(observing_id(key))
        if held is None or held.fields.get("work") is None:
            return
        stale = observing.keeper.lease.clear_stale()
    except StoreError as error:
        log.info("whether an observation was cut off is not known: %s", error)
        return
    if stale:
        inbox.user_messages.append(f"foredeck: {stale}")


def _summary(objects: Objects, branch: Branch, chunk: Chunk) -> str:
    """Of the messages of a chunk that lie on the branch at hand."""
    covered = {message.address for message in chunk.messages}
    items = [i for i in branch.plan.items if i.key.address in covered]
    if not items:
        return ""
    first = chunk.messages[0].turn
    turns = split_turns(items, first + (items[0].kind != "user"))
    return summary_of(objects, turns, 0, SummaryRequest("window", SUMMARY_CHARS, 0), None, ()).long


def others_section(
    config: Config, store: Store, info: SessionInfo, session_folder: SessionFolder
) -> OtherSessionsSection | None:
    """The section of the head; None unless notes are the project's, and in a replay."""
    is_shared = config.observations != "off" and config.observing.scope == "resource"
    if not is_shared or not info.is_live:
        return None
    return OtherSessionsSection(store, session_folder.project.id, info.family)
