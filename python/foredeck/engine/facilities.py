"""Makes a session's facilities: head sections, tools, background work."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar

from foredeck.config import Config
from foredeck.context.state.facilities import Facilities, FacilityInputs
from foredeck.context.state.objects import SessionInfo
from foredeck.context.state.session import SessionFolder
from foredeck.context.tools.memory_search import memory_search
from foredeck.engine.extraction import extraction
from foredeck.engine.memory import memory_of, promote_finding, rules_section
from foredeck.engine.observing_facility import make_observing, others_section
from foredeck.engine.pool import make_pool
from foredeck.engine.project_notes import project_notes
from foredeck.engine.tasks import make_tasks, work_on_tasks
from foredeck.engine.worklog import make_work_log, own_work
from foredeck.model.memory import MemoryScope, by_an_agent
from foredeck.store.store import Store
from foredeck.working import ContextUpdates, WorkingMemory, WorkingSection, open_page

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


def make_facilities(opening: FacilityInputs) -> Facilities:
    """A replay (`session.info.is_live` false) must not look at the disk."""
    config, session_folder, session = opening.config, opening.session_folder, opening.session
    info, objects, chat, inbox = session.info, session.objects, session.chat, session.inbox
    store, shows, wait = objects.store, config.head.shows, opening.layers_wait
    memory = make_or_log(memory_of, config, objects, chat, session_folder)
    work = make_or_log(work_on_tasks, config, store, info, session_folder)
    search = make_or_log(memory_search, config, objects, chat, session_folder, memory, work)
    pages = make_or_log(_working_pages, config, store, info, session_folder)
    updates = None if pages is None else make_or_log(ContextUpdates, pages)
    tasks = None if work is None else make_or_log(make_tasks, work, objects, chat, updates, search)
    observing = make_or_log(make_observing, config, objects, chat, inbox, session_folder)
    in_head = memory if "memory" in shows else None
    parts = (
        # Sections stand in the order of the head, the stablest first: a provider's cache ends at
        # the first byte that differs.
        make_or_log(rules_section, config, info),
        None if in_head is None else in_head.of_user(),
        None if pages is None or "page" not in shows else WorkingSection(list(pages.values())),
        *(() if tasks is None else (tasks, tasks.active, tasks.query, tasks.mutate)),
        make_or_log(make_work_log, config, store, info, session_folder, wait),
        make_or_log(make_pool, config, objects, chat, session_folder, wait),
        make_or_log(others_section, config, store, info, session_folder),
        *(() if in_head is None else (in_head.of_session(), in_head.findings())),
        # These are in no order; jobs have priorities.
        make_or_log(project_notes, config, objects, inbox, session_folder, wait),
        make_or_log(own_work, config, store, info),
        memory,
        search,
        make_or_log(promote_finding, config, objects, memory),
        *(() if observing is None else (observing, observing.notes)),
        make_or_log(extraction, config, objects, chat, inbox, session_folder),
    )
    return Facilities([part for part in parts if part is not None])


def _working_pages(
    config: Config, store: Store, info: SessionInfo, session_folder: SessionFolder
) -> Mapping[MemoryScope, WorkingMemory] | None:
    """Pages in head order; None in a replay, whose project is unknown."""
    if not info.is_live:
        return None
    by = by_an_agent(info.id)
    return {
        "resource": open_page(config, store, "resource", session_folder.project.id, by),
        "thread": open_page(config, store, "thread", info.id, by),
    }


def make_or_log(make: Callable[P, T | None], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """Makes something, or None if it is off or fails; failures are logged."""
    try:
        return make(*args, **kwargs)
    except Exception:
        # The session works without it, and the log says why.
        log.exception("%s failed", getattr(make, "__name__", make))
        return None
