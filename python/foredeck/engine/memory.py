"""Memory of an opened session: whose it is, and what of it stands before the chat."""

from __future__ import annotations

import logging

from foredeck.config import Config
from foredeck.errors import ForedeckError
from foredeck.hosts.protocol import SessionOpenParams
from foredeck.memory.trust import session_statement
from foredeck.memory.user import User, load_user

log = logging.getLogger(__name__)


def user_of(config: Config) -> User | None:
    """Who works here; None where their key cannot be read, and nothing counts as said by them."""
    try:
        return load_user(config.home)
    except (OSError, ForedeckError) as error:
        log.warning("the user's key: %s", error)
        return None


def begun_by(config: Config, params: SessionOpenParams) -> str | None:
    """What a new session carries that began at the user's side; None for a subagent's."""
    user = user_of(config) if params.started_by is None else None
    return None if user is None else user.vouch(session_statement(params.session))
