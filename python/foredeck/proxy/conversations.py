"""The conversations that are open, and what became of the requests."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections import OrderedDict, deque
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
"""Conversations that are kept open: another one closes the one that was used longest ago, which is
opened again from the store when its client comes back."""
MOST_NOTICES = 20
"""The newest ones of a conversation that are kept."""


@dataclass(slots=True)
class ConversationState:
    """What the status page says of a conversation, since it was opened."""

    session: str
    api: str
    managed: int = 0
    """Requests that went out as foredeck made them."""
    passed: int = 0
    """Those that went out as they came."""
    own_calls: int = 0
    """Times that the model was asked again after it had called foredeck's tools."""
    notices: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_NOTICES))
    """What the engine tells its user."""


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
    """Opens them, and closes those that were used longest ago.

    All work is done on one thread, in turn: it is Python's, which would take turns anyway, and
    engines of one process that commit at the same time would only wait for each other's locks.
    """

    def __init__(self, options: ProxyOptions) -> None:
        self.options = options
        self.states: OrderedDict[str, ConversationState] = OrderedDict()
        """Of those that were used last."""
        self._open: OrderedDict[str, ClientChat] = OrderedDict()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="foredeck")

    def state(self, session: str, wire: ModelApi) -> ConversationState:
        """The line of the status page."""
        if session not in self.states:
            while len(self.states) >= MOST_OPEN:
                self.states.popitem(last=False)
            self.states[session] = ConversationState(session, wire.format().api)
        self.states.move_to_end(session)
        return self.states[session]

    async def work(self, session: str, wire: ModelApi, do: Callable[[ClientChat], R]) -> R:
        """Do something with a conversation, when it is its turn.

        Raises whatever that raises, and `ForedeckError` where it cannot be opened. The next request
        begins anew then, with what is stored.
        """

        def on_thread() -> R:
            try:
                return do(self._opened(session, wire))
            except BaseException:
                self._drop(session)
                raise

        return await asyncio.get_running_loop().run_in_executor(self._thread, on_thread)

    def _opened(self, session: str, wire: ModelApi) -> ClientChat:
        if session not in self._open:
            while len(self._open) >= MOST_OPEN:
                self._drop(next(iter(self._open)))
            options = self.options
            self._open[session] = ClientChat(
                session,
                wire.format(),
                cwd=options.cwd,
                home=options.home,
                settings=options.all_settings(),
            )
        self._open.move_to_end(session)
        return self._open[session]

    def _drop(self, session: str) -> None:
        """Close a conversation, and free what it has made."""
        self._close(session)
        # An engine exempts what it makes from collection: most processes have one session alone.
        gc.unfreeze()
        gc.collect()

    def _close(self, session: str) -> None:
        chat = self._open.pop(session, None)
        try:
            if chat is not None:
                chat.close()
        except Exception:
            log.exception("a conversation was not closed")

    async def close(self) -> None:
        """Close all of them."""

        def on_thread() -> None:
            for session in list(self._open):
                self._close(session)

        await asyncio.get_running_loop().run_in_executor(self._thread, on_thread)
        self._thread.shutdown()
