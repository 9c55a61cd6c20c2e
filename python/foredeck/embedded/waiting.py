"""The same for a loop that awaits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self, TypeVar

from foredeck.embedded.format import ToolRequest
from foredeck.embedded.manager import ContextManager

R = TypeVar("R")


class AsyncContextManager:
    """`ContextManager` with methods that are awaited; its arguments are the same.

    An engine belongs to one thread, so each of these has one of its own, and calls take turns.
    """

    def __init__(self, session: str, **arguments: Any) -> None:
        self._arguments = (session, arguments)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="foredeck")
        self._manager: ContextManager | None = None

    async def __aenter__(self) -> Self:
        session, arguments = self._arguments
        self._manager = await self._run(lambda: ContextManager(session, **arguments))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def prepare(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        system: str | None = None,
    ) -> list[dict[str, Any]]:
        """See `ContextManager.prepare`."""
        manager = self._opened
        return await self._run(lambda: manager.prepare(messages, tools=tools, system=system))

    async def call(self, use: ToolRequest) -> dict[str, Any]:
        """See `ContextManager.call`."""
        manager = self._opened
        return await self._run(lambda: manager.call(use))

    async def observed(
        self, use: ToolRequest, text: str, *, failed: bool = False
    ) -> dict[str, Any]:
        """See `ContextManager.observed`."""
        manager = self._opened
        return await self._run(lambda: manager.observed(use, text, failed=failed))

    def report(self, usage: Mapping[str, Any]) -> None:
        """See `ContextManager.report`."""
        self._opened.report(usage)

    def owns(self, tool: str) -> bool:
        """See `ContextManager.owns`."""
        return self._opened.owns(tool)

    def calls_in(self, answer: Mapping[str, Any]) -> list[ToolRequest]:
        """See `ContextManager.calls_in`."""
        return self._opened.calls_in(answer)

    @property
    def tools(self) -> list[dict[str, Any]]:
        """See `ContextManager.tools`."""
        return self._opened.tools

    @property
    def notices(self) -> list[str]:
        """See `ContextManager.notices`."""
        return self._opened.notices

    async def close(self) -> None:
        """Let go of the store. Twice is fine."""
        if self._manager is not None:
            await self._run(self._manager.close)
            self._manager = None
        self._thread.shutdown()

    @property
    def _opened(self) -> ContextManager:
        if self._manager is None:
            raise RuntimeError("use it with `async with`: it is not open")
        return self._manager

    async def _run(self, work: Callable[[], R]) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
