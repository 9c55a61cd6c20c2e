"""What other sessions of the project have noted, in the head of those that share it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foredeck.config import Config
from foredeck.context.state.session import Session
from foredeck.sources.opening import open_filesystems
from foredeck.sources.projects import project_of

if TYPE_CHECKING:
    from foredeck.observations.others import OtherSessionsSection


def others_section(config: Config, session: Session) -> OtherSessionsSection | None:
    """The section of the head; None unless notes are the project's, and in a replay."""
    is_shared = config.observations != "off" and config.observing.scope == "resource"
    if not is_shared or not session.is_live:
        return None
    # Not at the top: an engine starts without what most sessions never need.
    from foredeck.observations.others import OtherSessionsSection

    own = frozenset({session.id, *session.ancestors})
    return OtherSessionsSection(session.store, project_id(config, session), own)


def project_id(config: Config, session: Session) -> str:
    """The project that a session works in."""
    return project_of(session.cwd, open_filesystems(config, session.cwd)).id
