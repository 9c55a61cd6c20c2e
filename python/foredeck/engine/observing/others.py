"""What other sessions of the project have noted, in the head of those that share it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foredeck.config import Config
from foredeck.context.state.session import Session
from foredeck.engine.session_project import session_project

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
    return OtherSessionsSection(session.store, session_project(config, session).id, own)
