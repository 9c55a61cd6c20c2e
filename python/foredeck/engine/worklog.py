"""Earlier work of the project, for an opened session."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from foredeck.config import Config
from foredeck.context.state.objects import SessionInfo
from foredeck.context.state.session import SessionFolder
from foredeck.derived.follower import Follower
from foredeck.derived.layer import LayerBusy, OutOfTime, TimeBudget, until
from foredeck.engine.opened import FOLLOWING_S
from foredeck.errors import StoreError
from foredeck.sources.projects import folders_of_project
from foredeck.store.sessions import private_sessions
from foredeck.store.store import Store
from foredeck.worklog import FinishedWork, WorkLog, done_by, folders

log = logging.getLogger(__name__)

BATCH = 200
"""Versions between two looks at the clock."""


def make_work_log(
    config: Config, store: Store, info: SessionInfo, session_folder: SessionFolder, wait: TimeBudget
) -> WorkLog | None:
    """The head's work log; None if off or empty."""
    if "worklog" not in config.head.shows or store.latest() is None:
        return None
    try:
        work = _read(config, store, info, session_folder, wait)
    except StoreError as error:
        log.warning("the work log cannot be read: %s", error)
        return None
    return WorkLog(work, info.cwd) if work else None


@dataclass(frozen=True, slots=True)
class OwnWork:
    """The session's own work, taken in as it ends: the next opening need not wait for it then."""

    config: Config
    store: Store

    def follow_work(self) -> None:
        try:
            with Follower(
                self.store, "worklog", self.config.home, batch=BATCH, patience_s=FOLLOWING_S
            ) as follower:
                follower.catch_up(until(time.monotonic() + FOLLOWING_S))
        except (OutOfTime, LayerBusy):
            log.debug("the work log is taken in later")
        except StoreError as error:
            log.warning("the work log was not brought up to date: %s", error)


def own_work(config: Config, store: Store, info: SessionInfo) -> OwnWork | None:
    """None without a work log, and in a replay."""
    return OwnWork(config, store) if "worklog" in config.head.shows and info.is_live else None


def _read(
    config: Config, store: Store, info: SessionInfo, session_folder: SessionFolder, wait: TimeBudget
) -> Sequence[FinishedWork]:
    with (
        wait.spent() as left_s,
        Follower(store, "worklog", config.home, batch=BATCH, patience_s=left_s) as follower,
    ):
        # What is left is taken in at the next opening; until then the session knows what was read.
        with suppress(OutOfTime, LayerBusy):
            follower.catch_up(until(time.monotonic() + left_s))
        return _of_project(follower, store, info, session_folder)


def _of_project(
    follower: Follower, store: Store, info: SessionInfo, session_folder: SessionFolder
) -> Sequence[FinishedWork]:
    with follower.tables() as db:
        cwd_by_session = folders(db)
        cwds, project = {info.cwd}, None
        if info.is_live:  # a replay must not look at the disk
            project = session_folder.project.id
            project_folders = folders_of_project(
                info.cwd, sorted({*cwd_by_session.values()}), session_folder.filesystems
            )
            cwds.update(project_folders)
        # What a private session did is found nowhere outside it.
        hidden = {info.id, *private_sessions(store)}
        others = [
            id for id, cwd in sorted(cwd_by_session.items()) if cwd in cwds and id not in hidden
        ]
        work = done_by(db, others, project, but=info.id)
        return [one for one in work if one.session not in hidden]
