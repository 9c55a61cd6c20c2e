"""The project that a session works in."""

from __future__ import annotations

from foredeck.config import Config
from foredeck.context.state.session import Session
from foredeck.sources.opening import open_filesystems
from foredeck.sources.projects import Project, project_of


def session_project(config: Config, session: Session) -> Project:
    """The project of the session's folder, found once: each facility that is made for a
    session asks for it. Not for a replay, which must not read the disk."""
    if session.project is None:
        session.project = project_of(session.info.cwd, open_filesystems(config, session.info.cwd))
    return session.project
