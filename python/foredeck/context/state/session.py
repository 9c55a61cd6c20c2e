"""All that the engine holds in memory of one open session."""

from __future__ import annotations

from dataclasses import dataclass

from foredeck.context.state.chat import Chat
from foredeck.context.state.inbox import Inbox
from foredeck.context.state.info import SessionInfo
from foredeck.context.state.objects import Objects
from foredeck.context.state.request import PromptFrame


@dataclass(frozen=True, slots=True)
class Session:
    """One agent's interaction, in its parts. Whoever needs one or two of them takes these."""

    info: SessionInfo
    objects: Objects
    chat: Chat
    inbox: Inbox
    frame: PromptFrame
