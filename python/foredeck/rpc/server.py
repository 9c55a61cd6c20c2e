"""`foredeck engine`: one engine on stdin and stdout, and its methods."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from pydantic import ValidationError

from foredeck.config import ensure_home, load_config
from foredeck.errors import ForedeckError
from foredeck.hosts.host import Host
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
from foredeck.rpc.peer import Handler, Method, Peer
from foredeck.rpc.wire import (
    InvalidParamsError,
    InvalidRequestError,
    ProtocolError,
    StdioTransport,
    claim_stdio,
)

if TYPE_CHECKING:
    from foredeck.engine.engine import Engine

log = logging.getLogger(__name__)

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


@dataclass(slots=True)
class EngineMethods:
    """Serves the protocol with an engine made by `initialize`, on the event loop."""

    _open_engine: Callable[[InitializeParams], Engine]
    _end: Callable[[str], None]
    _models: HostModel
    _engine: Engine | None = None
    _program: HostProgram | None = None

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
            if self._engine is None:
                raise InvalidRequestError("Invalid request: send initialize first")
            result = route.call(self._engine, parse_params(route.params, params))
            return {} if result is None else result

        return serve

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


LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


_PRICED_IN = "`cost` in Pi's models.json"

EngineFactory = Callable[..., "Engine"]
"""The `Engine` class, except in tests."""


def serve(factory: EngineFactory, flags: Iterable[str] = ()) -> int:
    """Serves one host until it is done; returns the exit code.

    `flags` are KEY=VALUE settings above all others.
    """
    try:
        source, sink = claim_stdio()
    except OSError as error:
        print(f"foredeck engine: stdin or stdout is closed: {error}", file=sys.stderr)
        return 2
    # What a library prints must not get between the answers.
    sys.stdout = sys.stderr
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format=LOG_FORMAT)
    return asyncio.run(_Server(factory, tuple(flags), StdioTransport(source, sink)).run())


class _Server:
    def __init__(
        self, factory: EngineFactory, flags: tuple[str, ...], transport: StdioTransport
    ) -> None:
        self._flags = flags
        self._factory = factory
        self._transport = transport
        self._models = HostModel(self._call)
        self._methods = EngineMethods(self._open_engine, self._end, self._models)
        self._peer: Peer

    async def run(self) -> int:
        """Serves; returns the exit code."""
        self._peer = Peer(self._transport, self._methods.table())
        parent = ParentWatch(lambda: self._end("the host process is gone"))
        parent.start()
        self._end_on_signals()
        try:
            await self._peer.run()
        finally:
            code = self._close()
            await self._peer.close()  # last: the host takes the end of stdout for the end of us
            parent.stop()
        return code

    def _open_engine(self, params: InitializeParams) -> Engine:
        resolved = load_config(project=Path(params.cwd), trusted=params.trusted, flags=self._flags)
        config = resolved.config
        logging.getLogger("foredeck").setLevel(config.log_level.upper())
        ensure_home(config.home)
        loop = asyncio.get_running_loop()
        return self._factory(
            config,
            Host(
                self._notify,
                loop.call_soon_threadsafe,
                self._models,
                self._show,
                _PRICED_IN,
                params.host.name,
            ),
            warnings=[resolved.warning] if resolved.warning else [],
        )

    def _notify(self, level: str, text: str) -> None:
        self._peer.notify("host/notify", {"level": level, "text": text})

    def _show(self, text: str) -> None:
        self._peer.notify("host/work", {"text": text})

    async def _call(self, method: str, params: dict[str, Any], *, timeout_s: float | None) -> Any:
        return await self._peer.call(method, params, timeout_s=timeout_s)

    def _end(self, reason: str) -> None:
        self._peer.stop(reason)

    def _close(self) -> int:
        try:
            self._methods.close()
        except ForedeckError as error:
            log.error("closing failed: %s", error)
            return error.exit_code
        except Exception:
            log.exception("closing failed")
            return 1
        return 0

    def _end_on_signals(self) -> None:
        """Ends on SIGTERM and SIGHUP; on Ctrl-C only if started by hand, since terminals send it to
        the host's children too."""
        loop = asyncio.get_running_loop()

        def on_signal(number: int, _frame: FrameType | None) -> None:
            # A handler runs within whatever the main thread does, and a loop that sleeps in its
            # selector would not see what it has left there.
            loop.call_soon_threadsafe(self._end, signal.Signals(number).name)

        for name in ("SIGTERM", "SIGHUP", "SIGBREAK"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), on_signal)
        by_hand = os.isatty(self._transport.source)
        # The terminal sends Ctrl-C to all children of the host, which may go on.
        signal.signal(signal.SIGINT, on_signal if by_hand else signal.SIG_IGN)


# Detects that the host has died although its end of the pipe is still open.
#
# That happens where another child of the host has inherited the pipe. Without this the engine
# would wait for input for ever.

POLL_SECONDS = 2.0
GRACE_SECONDS = 30.0
"""For the engine to end by itself."""


class ParentWatch:
    """Calls `gone` when the parent process has ended.

    A stuck process is ended GRACE_SECONDS later, as an orphan would hold the store open.
    """

    def __init__(self, gone: Callable[[], None]) -> None:
        self._gone = gone
        self._parent = os.getppid()
        self._ended = threading.Event()

    def start(self) -> None:
        """Starts watching on a daemon thread; not on Windows, which reuses ids."""
        if sys.platform != "win32":
            loop = asyncio.get_running_loop()
            threading.Thread(
                target=self._watch, args=(loop,), name="foredeck-parent", daemon=True
            ).start()

    def stop(self) -> None:
        self._ended.set()

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        while os.getppid() == self._parent:
            if self._ended.wait(POLL_SECONDS):
                return
        try:
            loop.call_soon_threadsafe(self._gone)
        except RuntimeError:  # the loop has just ended
            return
        if not self._ended.wait(GRACE_SECONDS):
            os._exit(1)
