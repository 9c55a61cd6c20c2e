"""The conversations that are open, and what became of the requests."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from foredeck.proxy.conversation import ClientChat
from foredeck.proxy.wires import ModelApi

log = logging.getLogger(__name__)

R = TypeVar("R")

MOST_OPEN = 24
"""Conversations that are kept open: another one closes the one that was used longest ago, and is
opened again from the store when its client comes back."""


@dataclass(slots=True)
class ConversationState:
    """What the status page says of a conversation."""

    session: str
    api: str
    managed: int = 0
    """Requests that went out as foredeck made them."""
    passed: int = 0
    """Those that went out as they came."""
    own_calls: int = 0
    """Times that the model was asked again after it had called foredeck's tools."""


@dataclass(slots=True)
class ProxyOptions:
    """What a proxy was started with."""

    cwd: Path
    home: Path | None = None
    kept: str = "what its sessions say is stored."
    tools: bool = True
    window: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    def all_settings(self) -> dict[str, str]:
        """Of an engine."""
        off = {} if self.tools else {"tools.context": "false", "tools.search": "false"}
        return {**off, **self.settings}


class Conversations:
    """Opens them, closes what nobody has used for long, and gives each a turn at a time."""

    def __init__(self, options: ProxyOptions) -> None:
        self.options = options
        self.states: dict[str, ConversationState] = {}
        self._open: OrderedDict[str, _OpenChat] = OrderedDict()
        self._turns: dict[str, asyncio.Lock] = {}
        self._busy: Counter[str] = Counter()

    def state(self, session: str, wire: ModelApi) -> ConversationState:
        """The line of the status page."""
        api = wire.format().api
        return self.states.setdefault(session, ConversationState(session, api))

    async def work(self, session: str, wire: ModelApi, do: Callable[[ClientChat], R]) -> R:
        """Do something with a conversation, on its thread, when it is its turn. Raises whatever
        that raises, and `ForedeckError` where it cannot be opened."""
        turn = self._turns.setdefault(session, asyncio.Lock())
        self._busy[session] += 1
        try:
            async with turn:
                return await (await self._opened(session, wire)).run(do)
        finally:
            self._busy[session] -= 1
            if not self._busy[session]:
                del self._busy[session], self._turns[session]

    async def _opened(self, session: str, wire: ModelApi) -> _OpenChat:
        if (known := self._open.get(session)) is not None:
            self._open.move_to_end(session)
            return known
        idle = [name for name in self._open if name not in self._busy]
        for name in idle[: max(0, len(self._open) + 1 - MOST_OPEN)]:
            await self._close(name)
        thread, options = ThreadPoolExecutor(1, thread_name_prefix="foredeck"), self.options

        def make() -> ClientChat:
            return ClientChat(
                session,
                wire.format(),
                cwd=options.cwd,
                home=options.home,
                settings=options.all_settings(),
            )

        try:
            made = await asyncio.get_running_loop().run_in_executor(thread, make)
        except BaseException:
            thread.shutdown(wait=False)
            raise
        self._open[session] = _OpenChat(made, thread)
        return self._open[session]

    async def forget(self, session: str) -> None:
        """Its work has failed: the next request begins anew with what is stored."""
        if session in self._open:
            await self._close(session)

    async def _close(self, session: str) -> None:
        opened = self._open.pop(session)
        try:
            await opened.run(ClientChat.close)
        except Exception:
            log.exception("a conversation was not closed")
        opened.thread.shutdown(wait=False)

    async def close(self) -> None:
        """Close all of them."""
        for session in list(self._open):
            await self._close(session)


@dataclass(frozen=True, slots=True)
class _OpenChat:
    """A conversation, and the one thread that works on it."""

    conversation: ClientChat
    thread: ThreadPoolExecutor

    async def run(self, do: Callable[[ClientChat], R]) -> R:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.thread, do, self.conversation)
