"""The host's models, over the connection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from pydantic import ValidationError

from foredeck.errors import ForedeckError
from foredeck.finding import Finding, note, ok, problem
from foredeck.hosts.host import (
    AskCancelled,
    AskingTerms,
    AskTimedOut,
    CompleteParams,
    CompleteReply,
    CompleteResult,
    ModelName,
    ModelParams,
    ModelResult,
    ModelUsage,
    NoModel,
    NotAsked,
    UselessAnswer,
    dollars,
)
from foredeck.hosts.pi import to_complete_result
from foredeck.hosts.protocol import HostProgram, Params
from foredeck.model.call_values import CallStats
from foredeck.rpc.wire import CANCELLED, PeerClosedError, RemoteError
from foredeck.store.clock import now_ms
from foredeck.version import pi_finding, version_in

R = TypeVar("R", bound=Params)

_DESCRIBE_S = 10.0
_REFUSALS: dict[int, type[ForedeckError]] = {error.code: error for error in (NoModel, NotAsked)}


class HostModel:
    """Asks the host's models, but not while a context is assembled. Raises what `hosts.host` names,
    and `RemoteError`."""

    def __init__(self, call: Callable[..., Awaitable[Any]]) -> None:
        self._call = call

    async def offered(self, model: ModelName | None = None) -> ModelResult:
        """Whether a model can be asked now, and its price."""
        params = ModelParams(model=model).model_dump(exclude_none=True)
        offer = await self._send("host/model", params, ModelResult.model_validate, _DESCRIBE_S)
        return offer.as_of(now_ms())

    async def ask(self, question: CompleteParams, *, timeout_s: float) -> CompleteResult:
        """Asks one question; waiting for an open context counts towards `timeout_s`."""
        params = question.model_dump(exclude_none=True)

        def read(reply: Any) -> CompleteResult:
            warm = question.warm is not None
            return to_complete_result(CompleteReply.model_validate(reply), warm=warm)

        answer = await self._send("host/complete", params, read, timeout_s)
        if answer.failed is not None:
            raise UselessAnswer(f"The model's answer is of no use: {answer.failed}.", answer.usage)
        return answer

    async def _send(
        self, method: str, params: dict[str, Any], read: Callable[[Any], R], timeout_s: float
    ) -> R:
        try:
            return read(await self._call(method, params, timeout_s=timeout_s))
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


_ANSWER_S = 100.0
"""Less than the host waits."""
_ANSWER_TOKENS = 100
_EXPECTED_TOKENS = 10

_QUESTION = (
    "This is a check that you can be reached. Answer with the one word: ready. Call no tool."
)
_PRICES = {
    "input": "in",
    "output": "out",
    "cacheRead": "read from the cache",
    "cacheWrite": "written to it",
}


async def examine(
    host: HostModel,
    *,
    ask: bool,
    stats: CallStats | None = None,
    program: HostProgram | None = None,
) -> str:
    """The lines of the check; `ask` sends a one-word question at the stated cost."""
    version = version_in(program.version) if program and program.name == "pi" else None
    offer = await host.offered()
    findings = [*([pi_finding(version)] if version else []), _model(offer)]
    if offer.model is not None:
        terms = AskingTerms.of(offer, stats)
        findings.append(_cache(offer))
        findings.append(await _asked(host, terms) if ask else _not_asked(terms))
    return "\n".join(map(_line, findings))


def _model(offer: ModelResult) -> Finding:
    if offer.model is None:
        return problem("model", "none can be asked", offer.reason or "choose one with /model")
    thinks = "" if offer.thinking == "off" else f", and thinks about it (at least {offer.thinking})"
    text = f"{_name(offer.model)}, {_price(offer.model.get('cost'))}; can be asked{thinks}"
    if not offer.single_slot:
        return ok("model", text)
    return note(
        "model",
        text,
        "it is on this machine or has no price, so a question may push your session out of its "
        "cache: foredeck asks it only where you do",
    )


def _name(model: dict[str, Any]) -> str:
    return f"{model.get('provider')}/{model.get('id')}"


def _price(cost: Any) -> str:
    prices = cost if isinstance(cost, dict) else {}
    parts = [
        f"${price:g} {words}"
        for key, words in _PRICES.items()
        if isinstance(price := prices.get(key), int | float) and price > 0
    ]
    return f"{', '.join(parts)} for a million tokens" if parts else "no price known"


def _cache(offer: ModelResult) -> Finding:
    if offer.warm is not None:
        return ok("warm cache", f"would be read: the prompt of call {offer.warm}")
    return note("warm cache", f"would not be read: {offer.cold}")


def _not_asked(terms: AskingTerms) -> Finding:
    price = terms.price(_question(terms), _EXPECTED_TOKENS)
    cost = f", for about {dollars(price)}" if price else ""
    return ok("question", f"none sent; /foredeck doctor ask sends one word{cost}")


def _question(terms: AskingTerms) -> CompleteParams:
    message = {"role": "user", "content": _QUESTION}
    return CompleteParams(
        messages=[message], max_tokens=_ANSWER_TOKENS, warm=terms.warm, wanted=True
    )


async def _asked(host: HostModel, terms: AskingTerms) -> Finding:
    question = terms.with_room(_question(terms))
    try:
        answer = await host.ask(question, timeout_s=_ANSWER_S)
    except UselessAnswer as error:
        return problem("question", _used(error.usage), str(error))
    except ForedeckError as error:
        return problem("question", "not answered", str(error))
    return ok("question", f"{_said(answer)}; {_used(answer.usage)}")


def _said(answer: CompleteResult) -> str:
    text = " ".join(answer.text.split())[:60]
    return f'answered "{text}"' if text else f"answered without text ({answer.stop})"


def _used(usage: ModelUsage) -> str:
    return (
        f"{usage.read:,} tokens read from the cache, {usage.written:,} written to it, "
        f"{usage.fresh:,} fresh, {usage.output:,} out: ${usage.cost:.4f}"
    )


def _line(finding: Finding) -> str:
    advice = f" ({finding.advice})" if finding.advice else ""
    return f"{finding.status.ljust(7)}  {finding.name.ljust(10)}  {finding.text}{advice}"
