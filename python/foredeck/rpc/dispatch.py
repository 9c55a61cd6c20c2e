"""From a request to its handler, through jsonrpcserver, and every outcome to a JSON-RPC result."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, cast

from foredeck.errors import ForedeckError
from foredeck.rpc.framing import INTERNAL_ERROR

_PACKAGE, _MODULE = "jsonschema", "jsonschema.validators"


# jsonrpcserver, imported without its request validator.
#
# jsonrpcserver prepares a validator of jsonschema as soon as it is imported, and importing
# jsonschema takes about 40 ms. An engine has 375 ms from its start to its first answer, and needs
# nearly all of them for other imports. The validator would never be used: the peer checks the
# envelope of a request before it is dispatched. jsonrpcserver offers no other way to leave it
# out, so a stand-in takes jsonschema's place while it is imported, unless the real one is there
# already; afterwards `sys.modules` is as it was. This is the only place that does such a thing.


class _NeverUsed:
    """In the place of a validator class: what jsonrpcserver calls of it when it is imported."""

    def __init__(self, _schema: Any) -> None:
        pass

    @staticmethod
    def check_schema(_schema: Any) -> None:
        """jsonrpcserver's own schema needs no check."""

    def validate(self, _request: Any) -> None:
        """Must not be reached: it would accept anything."""
        raise AssertionError("dispatch with a validator of your own")


def _validator_for(_schema: Any) -> type[_NeverUsed]:
    return _NeverUsed


@contextmanager
def _without_jsonschema() -> Iterator[None]:
    if _PACKAGE in sys.modules:
        yield
        return
    validators = ModuleType(_MODULE)
    validators.validator_for = _validator_for  # type: ignore[attr-defined]
    sys.modules[_PACKAGE], sys.modules[_MODULE] = ModuleType(_PACKAGE), validators
    try:
        yield
    finally:
        del sys.modules[_PACKAGE], sys.modules[_MODULE]


with _without_jsonschema():
    from jsonrpcserver import Error, Result, Success, async_dispatch_to_serializable

__all__ = ["Error", "Result", "Success", "async_dispatch_to_serializable"]


log = logging.getLogger(__name__)

RequestId = int | str
Handler = Callable[[dict[str, Any]], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Method:
    """One method that the other side may call.

    handler       takes the params object and returns the result, or raises ForedeckError
    kind          a "request" that comes as a notification, without an id, is not served
    ordered       served in order of arrival among all ordered ones; the others at once
    blocks_calls  while one is open, no request of ours is sent: the host waits for the answer
    """

    handler: Handler
    kind: Literal["request", "notification"] = "request"
    ordered: bool = True
    blocks_calls: bool = False


@dataclass(slots=True, eq=False)
class OpenRequest:
    """A request that is not answered yet; `id` is None for a notification.

    `settled`: the handler has returned, so its work is done and can no longer be cancelled.
    `task` serves the request from its arrival on; `worker`, which jsonrpcserver starts, runs the
    handler.
    """

    name: str
    id: RequestId | None
    params: dict[str, Any]
    method: Method | None
    settled: bool = False
    answered: bool = False
    task: asyncio.Task[None] | None = None
    worker: asyncio.Task[Any] | None = None


Table = dict[str, Callable[..., Awaitable[Result]]]


def build_table(methods: Mapping[str, Method]) -> Table:
    """The methods in the form in which jsonrpcserver calls them."""
    return {name: _adapt(name, method.handler) for name, method in methods.items()}


async def dispatch(request: OpenRequest, table: Table) -> dict[str, Any] | None:
    """Serve one request whose envelope has been checked; gives the response, None if none is due.

    Raises nothing but cancellation.
    """
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": request.name, "params": request.params}
    if request.id is not None:
        message["id"] = request.id
    response = await async_dispatch_to_serializable(
        message, table, context=request, deserializer=_as_is, validator=_as_is
    )
    return cast("dict[str, Any] | None", response)


def _as_is(message: Any) -> Any:
    """Neither parse nor validate: the peer has done both, for it needs the id and `$/cancel`."""
    return message


def _adapt(name: str, handler: Handler) -> Callable[..., Awaitable[Result]]:
    async def serve(request: OpenRequest, /, **params: Any) -> Result:
        request.worker = asyncio.current_task()
        try:
            result = Success(await handler(params))
        except ForedeckError as error:
            if request.id is None:
                log.warning("%s failed: %s", name, error)
            result = Error(error.code, str(error))
        except Exception as error:
            log.exception("%s failed", name)
            result = Error(INTERNAL_ERROR, internal_error_text(error))
        request.settled = True
        return result

    return serve


def internal_error_text(error: BaseException) -> str:
    """A short line for the host; the traceback is in the engine's log."""
    text = " ".join(str(error).split())
    return f"internal error: {type(error).__name__}: {text}"[:200].rstrip(": ")
