"""The mode that a user has said for a session: kept with it, and taken along by its forks."""

from __future__ import annotations

from typing import get_args

from foredeck.context.state.chat import Chat
from foredeck.context.state.objects import Objects
from foredeck.model.observations import Mode

GUESS = "guess"
"""In place of a mode: the user has gone back to guessing."""


def mode_named(name: object) -> Mode | None:
    """The mode of this name; None where there is none."""
    known: tuple[Mode, ...] = get_args(Mode)
    return next((mode for mode in known if mode == name), None)


def kept_mode(objects: Objects) -> Mode | None:
    """What its user has said before; None where that is nothing, or to guess."""
    document = objects.document()
    return None if document is None else mode_named(document.observing_mode)


def keep_mode(objects: Objects, chat: Chat, name: str) -> None:
    """Keep a mode, or `GUESS`: at once where the session is stored, else with its first call.

    Raises `StoreError` where that fails.
    """
    document = objects.document()
    if document is None or document.observing_mode == name:
        return
    changed = document.model_copy(update={"observing_mode": name})
    objects.workspace.put(changed.seal())
    if chat.log.newest or chat.turns:
        objects.workspace.commit()
