"""The methods of the protocol, mapped to the engine's."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from foredeck.rpc import messages
from foredeck.rpc.api import EngineApi, Params
from foredeck.rpc.dispatch import Handler, Method
from foredeck.rpc.errors import InvalidRequestError, ProtocolError

log = logging.getLogger(__name__)

PROTOCOL = 1


class EngineMethods:
    """Serves the protocol with one engine, which is made when `initialize` asks for it.

    `open_engine` makes it from the checked params of `initialize`; `end` is called when the host
    asks for the shutdown. All on the event loop.
    """

    def __init__(
        self,
        open_engine: Callable[[messages.Initialize], EngineApi],
        end: Callable[[str], None],
    ) -> None:
        self._open_engine = open_engine
        self._end = end
        self._engine: EngineApi | None = None

    def table(self) -> dict[str, Method]:
        """All methods by name."""
        return {
            "initialize": Method(self._initialize),
            "session/open": self._request(messages.SessionOpen, "open_session"),
            "context/assemble": self._request(messages.Assemble, "assemble", blocks_calls=True),
            "session/compact": self._request(messages.SessionCompact, "compact"),
            "tool/call": self._request(messages.ToolCall, "tool_call"),
            "command": self._request(messages.Command, "command"),
            "session/close": self._request(messages.SessionClose, "close_session"),
            "tool/started": self._notification(messages.ToolStarted, "tool_started"),
            "tool/observed": self._notification(messages.ToolObserved, "observe"),
            "session/event": self._notification(messages.SessionEvent, "session_event"),
            "ping": Method(self._ping, ordered=False),
            "shutdown": Method(self._shutdown),
        }

    def close(self) -> None:
        """Close the engine, if there is one. What it raises comes out of here."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def _request(
        self, model: type[messages.Params], name: str, *, blocks_calls: bool = False
    ) -> Method:
        return Method(self._handler(model, name), blocks_calls=blocks_calls)

    def _notification(self, model: type[messages.Params], name: str) -> Method:
        return Method(self._handler(model, name), kind="notification")

    def _handler(self, model: type[messages.Params], name: str) -> Handler:
        async def serve(params: Params) -> Any:
            function = getattr(self._require_engine(), name)
            messages.check(model, params)
            result = function(params)
            return {} if result is None else result

        return serve

    def _require_engine(self) -> EngineApi:
        if self._engine is None:
            raise InvalidRequestError("Invalid request: send initialize first")
        return self._engine

    async def _initialize(self, params: Params) -> Params:
        if self._engine is not None:
            raise InvalidRequestError("Invalid request: this engine is initialized already")
        checked = messages.check(messages.Initialize, params)
        if checked.protocol != PROTOCOL:
            raise ProtocolError(
                f"the shim speaks protocol {checked.protocol}, this engine {PROTOCOL}: "
                "update both to the same version of foredeck"
            )
        engine = self._open_engine(checked)
        try:
            answer = engine.initialize(params)
        except BaseException:
            engine.close()
            raise
        self._engine = engine
        return answer

    async def _ping(self, params: Params) -> Params:
        messages.check(messages.Nothing, params)
        return {}

    async def _shutdown(self, params: Params) -> Params:
        messages.check(messages.Nothing, params)
        self._end("the host asked for it")
        return {}
