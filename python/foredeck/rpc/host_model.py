"""The host's models, asked over the connection."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol, TypeVar

from pydantic import ValidationError

from foredeck.errors import ForedeckError
from foredeck.hosts.host import (
    AskCancelled,
    AskTimedOut,
    CompleteParams,
    CompleteResult,
    ModelName,
    ModelParams,
    ModelResult,
    NoModel,
    NotAsked,
    UselessAnswer,
)
from foredeck.hosts.protocol import Params
from foredeck.rpc.errors import CANCELLED, PeerClosedError, RemoteError

R = TypeVar("R", bound=Params)

_DESCRIBE_S = 10.0
_REFUSALS: dict[int, type[ForedeckError]] = {error.code: error for error in (NoModel, NotAsked)}


class HostCall(Protocol):
    """`Peer.call`."""

    def __call__(
        self, method: str, params: dict[str, Any], *, timeout_s: float | None
    ) -> Awaitable[Any]: ...


class HostModel:
    """Asks the host's models. While a context is assembled, questions wait: see `ReverseCalls`.

    A caller that is cancelled takes its question back. Raises what `hosts.asking` names, and
    `RemoteError` where the host does not understand us.
    """

    def __init__(self, call: HostCall) -> None:
        self._call = call

    async def offered(self, model: ModelName | None = None) -> ModelResult:
        """Whether this model could be asked now, at which price; None: the one that is selected.
        Costs nothing."""
        params = ModelParams(model=model).model_dump(exclude_none=True)
        return await self._send("host/model", params, ModelResult, _DESCRIBE_S)

    async def ask(self, question: CompleteParams, *, timeout_s: float) -> CompleteResult:
        """One question; the wait for an open context counts towards `timeout_s`."""
        params = question.model_dump(exclude_none=True)
        answer = await self._send("host/complete", params, CompleteResult, timeout_s)
        if answer.failed is not None:
            raise UselessAnswer(f"The model's answer is of no use: {answer.failed}.", answer.usage)
        return answer

    async def _send(
        self, method: str, params: dict[str, Any], expected: type[R], timeout_s: float
    ) -> R:
        try:
            return expected.model_validate(await self._call(method, params, timeout_s=timeout_s))
        except TimeoutError:
            raise AskTimedOut(
                f"The model has not answered in {timeout_s:g} s; it can be asked again."
            ) from None
        except PeerClosedError:
            raise AskCancelled("The host is gone, and with it the question.") from None
        except ValidationError as error:
            names = sorted({".".join(map(str, problem["loc"])) for problem in error.errors()})
            raise ForedeckError(
                f"The host's answer to {method} cannot be read ({', '.join(names)}): "
                "update the extension and the engine to the same version."
            ) from None
        except RemoteError as error:
            raise _in_words(error) from None


def _in_words(error: RemoteError) -> ForedeckError:
    if error.code == CANCELLED:
        return AskCancelled("The host has cancelled the question: its session has ended.")
    kind = _REFUSALS.get(error.code)
    return error if kind is None else kind(str(error))
