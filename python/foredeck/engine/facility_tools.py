"""Makes the model's search for an opened session: a tool, and a part of `task-query`."""

from __future__ import annotations

from functools import partial
from typing import cast

from foredeck.config import Config
from foredeck.context.state.session import Session
from foredeck.context.tools.memory_search import MemorySearch
from foredeck.sources.opening import open_filesystems
from foredeck.sources.projects import folders_of_project
from foredeck.store.protocol import LocalStore


def memory_search(config: Config, session: Session) -> MemorySearch | None:
    """Search as this session sees it."""
    if not config.tools.search:
        return None
    # An engine works on a local store; only a replay, which runs no tools, may be given another.
    store = cast(LocalStore, session.store)
    filesystems = open_filesystems(config, session.cwd)
    in_project = partial(folders_of_project, session.cwd, filesystems=filesystems)
    return MemorySearch(session, store, config.home, in_project)
