"""The protocol's methods and parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from pydantic import ValidationError

from foredeck.hosts.protocol import (
    PROTOCOL_VERSION,
    AssembleParams,
    CommandParams,
    DoctorParams,
    HostProgram,
    InitializeParams,
    JsonObject,
    Params,
    RefusedParams,
    SessionCloseParams,
    SessionCompactParams,
    SessionEventParams,
    SessionHistoryParams,
    SessionOpenParams,
    ToolCallParams,
    ToolObservedParams,
    ToolPrepareParams,
    ToolStartedParams,
)
from foredeck.rpc.host_model import HostModel, examine
from foredeck.rpc.peer import Handler, Method
from foredeck.rpc.wire import InvalidParamsError, InvalidRequestError, ProtocolError

if TYPE_CHECKING:
    from foredeck.engine.engine import Engine

P = TypeVar("P", bound=Params)

PROBLEMS_SHOWN = 3
"""Most faulty members that an error names."""


class Route(NamedTuple, Generic[P]):
    """A method of the engine; `call` returns None for an empty result."""

    params: type[P]
    call: Callable[[Engine, P], Mapping[str, Any] | None]
    kind: Literal["request", "notification"] = "request"
    blocks_calls: bool = False


ROUTES: dict[str, Route[Any]] = {
    "session/open": Route(SessionOpenParams, lambda engine, params: engine.open_session(params)),
    "session/history": Route(
        SessionHistoryParams, lambda engine, params: engine.take_history(params)
    ),
    "context/assemble": Route(
        AssembleParams, lambda engine, params: engine.assemble(params), blocks_calls=True
    ),
    "context/refused": Route(RefusedParams, lambda engine, params: engine.refused(params)),
    "session/compact": Route(SessionCompactParams, lambda engine, params: engine.compact(params)),
    "tool/call": Route(ToolCallParams, lambda engine, params: engine.tool_call(params)),
    "tool/prepare": Route(ToolPrepareParams, lambda engine, params: engine.prepare_tool(params)),
    "command": Route(CommandParams, lambda engine, params: engine.command(params)),
    "session/close": Route(SessionCloseParams, lambda engine, params: engine.close_session(params)),
    "tool/started": Route(
        ToolStartedParams, lambda engine, params: engine.tool_started(params), "notification"
    ),
    "tool/observed": Route(
        ToolObservedParams, lambda engine, params: engine.tool_observed(params), "notification"
    ),
    "session/event": Route(
        SessionEventParams, lambda engine, params: engine.session_event(params), "notification"
    ),
}
"""`EngineMethods` adds those of the process."""


class EngineMethods:
    """Serves the protocol with an engine made by `initialize`, on the event loop."""

    def __init__(
        self,
        open_engine: Callable[[InitializeParams], Engine],
        end: Callable[[str], None],
        models: HostModel,
    ) -> None:
        self._open_engine = open_engine
        self._models = models
        self._end = end
        self._engine: Engine | None = None
        self._program: HostProgram | None = None

    def table(self) -> dict[str, Method]:
        """All methods by name."""
        return {
            "initialize": Method(self._initialize),
            "ping": Method(self._ping, ordered=False),
            "shutdown": Method(self._shutdown),
            # Not in turn: it may wait for a model, and what comes meanwhile must not wait for it.
            "doctor": Method(self._doctor, ordered=False),
            **{
                name: Method(self._handler(route), kind=route.kind, blocks_calls=route.blocks_calls)
                for name, route in ROUTES.items()
            },
        }

    def close(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def _handler(self, route: Route[Any]) -> Handler:
        async def serve(params: JsonObject) -> Mapping[str, Any]:
            engine = self._require_engine()
            result = route.call(engine, parse_params(route.params, params))
            return {} if result is None else result

        return serve

    def _require_engine(self) -> Engine:
        if self._engine is None:
            raise InvalidRequestError("Invalid request: send initialize first")
        return self._engine

    async def _initialize(self, params: JsonObject) -> Mapping[str, Any]:
        if self._engine is not None:
            raise InvalidRequestError("Invalid request: this engine is initialized already")
        parsed = parse_params(InitializeParams, params)
        if parsed.protocol != PROTOCOL_VERSION:
            raise ProtocolError(
                f"the shim speaks protocol {parsed.protocol}, this engine {PROTOCOL_VERSION}: "
                "update both to the same version of foredeck"
            )
        engine = self._open_engine(parsed)
        try:
            answer = engine.initialize(parsed)
        # Its store is open, and a host may send `initialize` again.
        except BaseException:
            engine.close()
            raise
        self._engine, self._program = engine, parsed.host
        return answer

    async def _ping(self, _params: JsonObject) -> Mapping[str, Any]:
        return {}

    async def _doctor(self, params: JsonObject) -> Mapping[str, Any]:
        opened = None if self._engine is None else self._engine.opened
        newest = None if opened is None else opened.session.chat.newest_record
        stats = None if newest is None else newest.stats
        ask = parse_params(DoctorParams, params).ask
        text = await examine(self._models, ask=ask, stats=stats, program=self._program)
        return {"text": text}

    async def _shutdown(self, _params: JsonObject) -> Mapping[str, Any]:
        self._end("the host asked for it")
        return {}


def parse_params(model: type[P], params: JsonObject) -> P:
    try:
        return model.model_validate(params)
    except ValidationError as error:
        raise InvalidParamsError(_explain(error)) from None


def _explain(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    faults = [
        f"{'.'.join(map(str, problem['loc'])) or 'params'}: {problem['msg']}"
        for problem in problems[:PROBLEMS_SHOWN]
    ]
    more = len(problems) - len(faults)
    return "Invalid params: " + "; ".join(faults) + (f"; and {more} more" if more else "")
