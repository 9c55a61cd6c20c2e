"""Observing in an opened session."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from foredeck.config import Config
from foredeck.context.state.chat import Chat
from foredeck.context.state.objects import Objects, SessionInfo
from foredeck.context.state.request import Inbox
from foredeck.context.state.session import SessionFolder
from foredeck.engine.observing import ChatBefore, Observing, observing_settings
from foredeck.errors import StoreError
from foredeck.model.observations import Work, observing_id
from foredeck.observations.reading import OtherSessionsSection
from foredeck.observations.rules import TimingRules
from foredeck.store.store import Store

if TYPE_CHECKING:
    from foredeck.engine.asking import SessionAsking
    from foredeck.observations.keeping import ObservationKeeper


log = logging.getLogger(__name__)


def make_observing(
    config: Config, objects: Objects, chat: Chat, inbox: Inbox, session_folder: SessionFolder
) -> Observing | None:
    """The observer; None if off, in a replay, and for a subagent.

    Clears what a killed engine left.
    """
    info = objects.info
    if config.observations == "off" or not info.is_live:
        return None
    settings, store = observing_settings(config), objects.store
    if objects.is_an_agents():
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
        _run,
    )
    _clear_stale(objects.store, inbox, observing, key)
    return observing


def others_section(
    config: Config, store: Store, info: SessionInfo, session_folder: SessionFolder
) -> OtherSessionsSection | None:
    """Other sessions' notes in the head; None unless notes belong to the project."""
    is_shared = config.observations != "off" and config.observing.scope == "resource"
    if not is_shared or not info.is_live:
        return None
    return OtherSessionsSection(store, session_folder.project.id, info.family)


def _keeper(
    info: SessionInfo, store: Store, key: str, project: str, rules: TimingRules
) -> ObservationKeeper:
    # Not at the top: most sessions end before there is anything to observe.
    from foredeck.observations.keeping import ObservationKeeper
    from foredeck.observations.lease import ObservingLease

    lease = ObservingLease(store, key, rules.scope)
    return ObservationKeeper(lease, info.id, sorted(info.ancestors), project, rules)


async def _run(
    observing: Observing,
    asking: SessionAsking,
    work: Work,
    before: ChatBefore | None,
    under_way: bool,
) -> None:
    # Loads with the first chunk that is observed: most sessions end before.
    from foredeck.engine.observing_runs import ObservingRun

    await ObservingRun(observing, asking, work, before).run(under_way=under_way)


def _clear_stale(store: Store, inbox: Inbox, observing: Observing, key: str) -> None:
    try:
        lease_head = store.head(observing_id(key))
        if lease_head is None or lease_head.fields.get("work") is None:
            return
        stale = observing.keeper.lease.clear_stale()
    except StoreError as error:
        log.info("whether an observation was cut off is not known: %s", error)
        return
    if stale:
        inbox.user_messages.append(f"foredeck: {stale}")
