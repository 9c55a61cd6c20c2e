"""What a session has beside its chat: sections of the head, tools, and work in the background.

A facility has a section (`context/head/section.py`), a tool, a worker (`background/jobs.py`), or
several of these. All are made here for the session that is opened. What is switched off is not
made, and costs nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from foredeck.config import Config
from foredeck.context.head.section import HeadSection
from foredeck.context.state.session import Session
from foredeck.context.tools.memory_search import memory_search
from foredeck.engine.background.jobs import BackgroundWorker
from foredeck.engine.extraction import extraction
from foredeck.engine.facility import Facilities, FacilityTool
from foredeck.engine.findings import promote_finding
from foredeck.engine.memory import (
    findings_section,
    memory_of_session,
    memory_of_user,
    rules_section,
)
from foredeck.engine.observing.facility import make_observing, others_section
from foredeck.engine.pool import make_pool
from foredeck.engine.tasks import active_task, task_mutate, task_query
from foredeck.engine.working import working_section
from foredeck.engine.worklog import make_work_log

log = logging.getLogger(__name__)

T = TypeVar("T")


Make = Callable[[Config, Session], T | None]
"""Makes something for an opened session; None where it is switched off or has no place there.

The store is `session.store`. Where `session.is_live` is false the session is a replay: nothing may
look at the disk.
"""

SECTIONS: Sequence[Make[HeadSection]] = (
    lambda config, session: rules_section(config, session.info),
    memory_of_user,
    working_section,
    active_task,
    make_work_log,
    make_pool,
    others_section,
    memory_of_session,
    findings_section,
)
"""In the order of the head, the stablest first: a provider's cache ends at the first byte that
differs."""

TOOLS: Sequence[Make[FacilityTool]] = (memory_search, task_query, task_mutate, promote_finding)
"""In any order: they are called by name."""


WORKERS: Sequence[Make[BackgroundWorker]] = (make_observing, extraction)
"""In any order: their jobs have priorities."""


def make_facilities(config: Config, session: Session) -> Facilities:
    """Those that are switched on for a session."""
    tools = _made(TOOLS, config, session)
    return Facilities(
        tuple(_made(SECTIONS, config, session)),
        {tool.name: tool for tool in tools},
        tuple(_made(WORKERS, config, session)),
    )


def _made(makers: Sequence[Make[T]], config: Config, session: Session) -> Iterator[T]:
    for make in makers:
        try:
            made = make(config, session)
        except Exception:
            # The session works without it, and the log says why.
            log.exception("%s failed", getattr(make, "__name__", make))
            continue
        if made is not None:
            yield made
