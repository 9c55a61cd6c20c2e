"""What an opened session learns of its project's earlier work."""

from __future__ import annotations

import logging
import time
from contextlib import suppress

from foredeck.config import Config
from foredeck.context.state.session import Session
from foredeck.derived.file import LayerBusy, reported
from foredeck.derived.follower import Follower
from foredeck.derived.registry import load_layer
from foredeck.engine.session_project import session_project
from foredeck.errors import StoreError
from foredeck.sources.filesystem import FilesystemMap
from foredeck.sources.projects import folders_of_project
from foredeck.store.privacy import private_sessions
from foredeck.store.protocol import Advance, LocalStore, Store
from foredeck.worklog.earlier import BranchLessons, EarlierWork
from foredeck.worklog.reading import done_by, folders, lessons_of
from foredeck.worklog.text import WorkLog

log = logging.getLogger(__name__)

BATCH = 200
"""Versions between two looks at the clock: long outputs of many calls could take seconds."""


FOLLOWING_S = 0.6
"""How long taking in a session's own work may take, where no request waits for that."""


class _TimeIsUpError(Exception):
    """The layer has more to take in than there is time for."""


def recall_work(config: Config, session: Session, filesystems: FilesystemMap) -> None:
    """Give a session what the project's other sessions did and learned, as far as that is switched
    on. A failure is only logged: the session opens without it."""
    if config.worklog.lines:
        session.lessons = BranchLessons()
    if not (config.worklog.lines or config.worklog.head) or session.objects.store.latest() is None:
        return
    if (store := session.objects.store.local) is None:
        return
    try:
        found = _read(config, session, store, filesystems)
    except StoreError as error:
        log.warning("the work log cannot be read: %s", error)
        return
    if session.lessons is not None:
        session.lessons.earlier = found.lessons
    if config.worklog.head:
        session.earlier_work = found


def follow_work(config: Config, store: Store) -> None:
    """Take in what the session itself has done, as far as that goes in a moment: the next opening
    does not wait for it then. A failure is only logged."""
    local, layer = store.local, load_layer("worklog")
    if local is None or not (config.worklog.lines or config.worklog.head):
        return
    try:
        with Follower(local, layer, config.home, batch=BATCH, patience_s=FOLLOWING_S) as follower:
            follower.catch_up(_until(time.monotonic() + FOLLOWING_S))
    except (_TimeIsUpError, LayerBusy):
        log.debug("the work log is taken in later")
    except StoreError as error:
        log.warning("the work log was not brought up to date: %s", error)


def make_work_log(config: Config, session: Session) -> WorkLog | None:
    """The work log's section of the head; None where there is no earlier work, or it is off."""
    earlier = session.earlier_work
    if not config.worklog.head or earlier is None or not earlier.done:
        return None
    return WorkLog(earlier.done, session.info.cwd)


def _read(
    config: Config, session: Session, store: LocalStore, filesystems: FilesystemMap
) -> EarlierWork:
    layer = load_layer("worklog")
    with (
        session.layers_wait.spent() as left_s,
        Follower(store, layer, config.home, batch=BATCH, patience_s=left_s) as follower,
    ):
        # What is left is taken in at the next opening; until then the session knows what was read.
        with suppress(_TimeIsUpError, LayerBusy):
            follower.catch_up(_until(time.monotonic() + left_s))
        return _of_project(follower, config, session, filesystems)


def _of_project(
    follower: Follower, config: Config, session: Session, filesystems: FilesystemMap
) -> EarlierWork:
    with reported(follower.path):
        known = folders(follower.db)
        wanted, project = {session.info.cwd}, None
        if session.info.is_live:  # a replay must not look at the disk
            project = session_project(config, session).id
            wanted.update(
                folders_of_project(session.info.cwd, sorted({*known.values()}), filesystems)
            )
        hidden = {session.info.id, *private_sessions(session.objects.store)}
        others = [id for id, cwd in sorted(known.items()) if cwd in wanted and id not in hidden]
        done = done_by(follower.db, others, project, but=session.info.id)
        done = [one for one in done if one.session not in hidden]
        return EarlierWork(lessons_of(follower.db, others), done)


def _until(end: float) -> Advance:
    def advance() -> None:
        if time.monotonic() > end:
            raise _TimeIsUpError

    return advance
