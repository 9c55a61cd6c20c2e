"""Questions for the host's models: what is sent, and by which error each way ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from engine_process import line
from test_peer import Wire

from foredeck.errors import ForedeckError
from foredeck.hosts.host import (
    AskCancelled,
    AskTimedOut,
    CompleteParams,
    CompleteResult,
    NoModel,
    NotAsked,
    UselessAnswer,
)
from foredeck.hosts.protocol import HostProgram
from foredeck.rpc.host_model import HostModel, examine
from foredeck.rpc.wire import RemoteError
from foredeck.store.clock import now_ms
from foredeck.version import PI_TESTED

QUESTION = CompleteParams(messages=[{"role": "user", "content": "?"}], max_tokens=9, warm=2)
USAGE = {"read": 4000, "written": 0, "fresh": 20, "output": 3, "cost": 0.00126}
_COUNTED = {
    "cacheRead": 4000,
    "cacheWrite": 0,
    "input": 20,
    "output": 3,
    "cost": {"total": 0.00126},
}
MESSAGE = {
    "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "ready"}],
    "stopReason": "stop",
    "provider": "p",
    "model": "m",
    "usage": _COUNTED,
}
CALL = {"type": "toolCall", "id": "c", "name": "bash", "arguments": {"command": "ls"}}


def reply(**fields: Any) -> dict[str, Any]:
    """What the host answers, with other fields in the model's message."""
    return {"message": {**MESSAGE, **fields}, "single_slot": False}


ANSWER = reply()
PRICES = {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}
OFFER = {
    "model": {"provider": "p", "id": "m", "cost": PRICES, "promptCache": {"short": 300}},
    "single_slot": False,
    "warm": 2,
}


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    made = Wire({})
    yield made
    await made.end()


async def asked(wire: Wire, timeout_s: float = 60) -> asyncio.Task[CompleteResult]:
    """A question that is on its way."""
    task = asyncio.create_task(HostModel(wire.peer.call).ask(QUESTION, timeout_s=timeout_s))
    await wire.settle()
    return task


def answered(result: Any) -> bytes:
    return line({"jsonrpc": "2.0", "id": "e1", "result": result})


def test_a_prompt_that_is_asked_again_stays_as_it_is() -> None:
    given = QUESTION.model_dump(exclude_none=True)
    for more in ({"system": "Be brief."}, {"messages": given["messages"] * 2}):
        with pytest.raises(ValueError, match="the prompt's own"):
            CompleteParams.model_validate({**given, **more})


async def test_only_what_is_said_is_sent_and_the_answer_comes_back(wire: Wire) -> None:
    task = await asked(wire)
    (sent,) = wire.take()
    assert sent["method"] == "host/complete"
    assert sent["params"] == {"messages": QUESTION.messages, "max_tokens": 9, "warm": 2}
    await wire.feed(answered(ANSWER))
    answer = await task
    assert (answer.text, answer.calls, answer.usage.model_dump()) == ("ready", [], USAGE)


@pytest.mark.parametrize(
    ("code", "kind"),
    [(-32030, NoModel), (-32031, NotAsked), (-32800, AskCancelled), (-32601, RemoteError)],
)
async def test_each_refusal_has_its_error(wire: Wire, code: int, kind: type[ForedeckError]) -> None:
    task = await asked(wire)
    error = {"code": code, "message": "choose one with /model"}
    await wire.feed(line({"jsonrpc": "2.0", "id": "e1", "error": error}))
    with pytest.raises(kind) as raised:
        await task
    assert type(raised.value) is kind


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"content": [CALL]}, "it calls tools"),
        ({"stopReason": "error", "errorMessage": "overloaded"}, "overloaded"),
        ({"stopReason": "aborted"}, "the call was aborted"),
    ],
)
async def test_an_answer_of_no_use_carries_what_it_took(
    wire: Wire, fields: dict[str, Any], why: str
) -> None:
    task = await asked(wire)
    await wire.feed(answered(reply(**fields)))
    with pytest.raises(UselessAnswer, match=why) as raised:
        await task
    assert raised.value.usage.model_dump() == USAGE


async def test_an_answer_in_another_shape_says_what_to_do(wire: Wire) -> None:
    task = await asked(wire)
    await wire.feed(answered(reply(usage={"cacheRead": 1})))
    with pytest.raises(ForedeckError, match=r"usage\.cost.*update the extension"):
        await task


async def test_a_question_that_takes_too_long_is_taken_back(wire: Wire) -> None:
    with pytest.raises(AskTimedOut, match=r"0\.01 s"):
        await (await asked(wire, timeout_s=0.01))
    sent, cancelled = wire.take()
    assert (cancelled["method"], cancelled["params"]) == ("$/cancel", {"id": sent["id"]})


async def test_the_end_of_the_connection_ends_the_question(wire: Wire) -> None:
    task = await asked(wire)
    await wire.end()
    with pytest.raises(AskCancelled):
        await task


async def told(offer: dict[str, Any], answer: Any = None, version: str | None = None) -> str:
    """What the doctor says where the host gives these answers."""

    async def call(method: str, _params: Any, *, timeout_s: float | None) -> Any:
        assert timeout_s
        return offer if method == "host/model" else answer

    program = None if version is None else HostProgram(name="pi", version=version)
    return await examine(HostModel(call), ask=answer is not None, program=program)


async def test_the_doctor_says_what_can_be_asked_and_what_that_took() -> None:
    assert await told({**OFFER, "sent_ms": now_ms()}, ANSWER) == (
        "ok       model       p/m, $3 in, $15 out, $0.3 read from the cache, $3.75 written to it "
        "for a million tokens; can be asked\n"
        "ok       warm cache  would be read: the prompt of call 2\n"
        'ok       question    answered "ready"; 4,000 tokens read from the cache, 0 written to it, '
        "20 fresh, 3 out: $0.0013"
    )


async def test_a_prompt_is_offered_while_the_provider_keeps_it() -> None:
    record, now = OFFER["model"], now_ms()

    async def cold(sent_ms: int, **model: Any) -> str | None:
        async def call(_method: str, _params: Any, *, timeout_s: float | None) -> Any:
            del timeout_s
            return {**OFFER, "model": {**record, **model}, "sent_ms": sent_ms}

        offer = await HostModel(call).offered()
        assert (offer.warm is None) == (offer.cold is not None)
        return offer.cold

    assert await cold(now - 290_000) is None
    assert "dropped the last call" in (await cold(now - 301_000) or "")
    long = {"retention": "long", "api": "anthropic-messages"}
    assert await cold(now - 3_000_000, **long, promptCache={"long": 3600}) is None
    assert "does not know how long" in (await cold(now, **long) or "")
    assert "does not know how long" in (await cold(now, promptCache=None) or "")


async def test_the_doctor_names_a_pi_that_foredeck_was_not_tested_with() -> None:
    newest = ".".join(map(str, PI_TESTED[-1]))
    tested = await told(OFFER, version=f"{newest}.7")
    assert tested.startswith(f"ok       pi          {newest}.7\n")
    assert (await told(OFFER, version="9.0.1-beta")).startswith(
        f"note     pi          9.0.1, newer than {newest}, the last that foredeck was tested with "
        "(Should something fail, update foredeck.)\n"
    )


async def test_the_doctor_says_what_is_in_the_way() -> None:
    none = await told({"model": None, "reason": "log in with /login"})
    assert none == "problem  model       none can be asked (log in with /login)"
    local = {"model": {"provider": "p", "id": "m"}, "single_slot": True, "cold": "it is old"}
    said = (await told(local, reply(stopReason="error", errorMessage="overloaded"))).split("\n")
    assert said[0].startswith("note     model       p/m, no price known; can be asked (it is on")
    assert said[1] == "note     warm cache  would not be read: it is old"
    assert said[2].startswith("problem  question    4,000 tokens read")
    assert said[2].endswith("(The model's answer is of no use: overloaded.)")


async def test_the_doctor_names_the_price_of_asking() -> None:
    said = await told({**OFFER, "sent_ms": now_ms()})
    assert said.endswith("none sent; /foredeck doctor ask sends one word, for about $0.0002")
    said = await told({**OFFER, "thinking": "low", "warm_thinking": "high", "sent_ms": now_ms()})
    assert "; can be asked, and thinks about it (at least low)\n" in said
    assert said.endswith("for about $0.0821"), "a third of what it may think"
