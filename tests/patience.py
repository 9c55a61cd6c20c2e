"""No deadlines: what is left out once one has passed depends on how busy a machine is."""

from __future__ import annotations

import pytest

from foredeck import notes
from foredeck.config import Config
from foredeck.context.tools import session_search
from foredeck.engine import extraction, opened, worklog
from foredeck.lookup import reader
from foredeck.notes import markdown
from foredeck.sources import git, git_process
from foredeck.timeline import command_versions, guard, keeping, repositories
from foredeck_xtdb import link, maintenance, node
from foredeck_xtdb import local_copy as journaled

ENOUGH_S = 100.0
"""Seconds; within the time that a test has."""


def be_patient(patch: pytest.MonkeyPatch) -> None:
    """Wait for as long as it takes wherever something is given some milliseconds."""
    patch.setattr(Config, "opening_s", ENOUGH_S)
    patch.setattr(keeping, "BUDGET_SHARE", 1000 * ENOUGH_S)
    patch.setattr(link, "LOOK_MS", int(1000 * ENOUGH_S))
    patch.setattr(link, "_CHECK_MS", int(1000 * ENOUGH_S))
    for owner, name in (
        *((keeping, "WARMING_S"), (keeping, "ENDING_S"), (command_versions, "IGNORED_S")),
        *((git_process, "CONFIGURATION_S"), (worklog, "FOLLOWING_S"), (extraction, "SEARCH_S")),
        *((opened, "CLOSING_S"), (markdown, "LEAST_S"), (markdown, "MOST_S")),
        *((repositories, "AFTER_S"), (guard, "RECENT_S"), (git, "DEADLINE_S")),
        *((session_search, "PATIENCE_S"), (notes, "CHAT_PATIENCE_S"), (reader, "PATIENCE_S")),
        *((node, "START_SECONDS"), (maintenance, "_STUCK_SECONDS"), (journaled, "PATIENCE")),
        (journaled, "DELIVERY_PATIENCE"),
    ):
        patch.setattr(owner, name, ENOUGH_S)
