"""The protocol's methods: what reaches the engine, and the shapes that do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from engine_process import INITIALIZE
from small_engine import SmallEngine, read_journal

from foredeck.config import Config
from foredeck.hosts.host import NO_HOST
from foredeck.hosts.protocol import (
    AssembleParams,
    AssembleResult,
    InitializeParams,
    SessionOpenParams,
)
from foredeck.rpc.host_model import HostModel
from foredeck.rpc.server import ROUTES, EngineMethods, parse_params
from foredeck.rpc.wire import InvalidParamsError

GOOD: dict[str, dict[str, Any]] = {
    "session/open": {
        "session": "s",
        "file": None,
        "cwd": "/r",
        "reason": "startup",
        "parent": None,
    },
    "session/history": {
        "session": "s",
        "messages": [{"role": "user", "content": "x"}],
        "entries": ["a"],
    },
    "context/refused": {"session": "s", "message": "400 the signature is not valid"},
    "context/assemble": {
        "session": "s",
        "keep": 0,
        "messages": [{"role": "user", "content": "x"}],
        "entries": ["a"],
        "time_ms": 1,
    },
    "session/compact": {"session": "s", "reason": "manual", "messages": [], "time_ms": 1},
    "tool/call": {"session": "s", "id": "t", "tool": "activate", "input": {"id": "@1"}},
    "tool/prepare": {"session": "s", "id": "t", "tool": "write", "input": {"path": "a.txt"}},
    "tool/started": {"session": "s", "id": "t", "tool": "edit", "path": "a.txt"},
    "tool/observed": {"session": "s", "id": "t", "tool": "bash", "content": [{"type": "text"}]},
    "command": {"session": "s", "name": "echo", "args": "x"},
    "session/event": {"session": "s", "kind": "tree", "anything": 1},
    "session/close": {"session": "s", "reason": "quit"},
    "doctor": {"ask": False},
    "ping": {},
    "shutdown": {},
}


async def no_model(_method: str, _params: dict[str, Any], *, timeout_s: float | None) -> Any:
    """A host that has none."""
    return {"model": None, "reason": f"no model in {timeout_s} s"}


@pytest.fixture
def methods(tmp_path: Path) -> EngineMethods:
    def open_engine(_params: InitializeParams) -> SmallEngine:
        return SmallEngine(Config(home=tmp_path), NO_HOST)

    return EngineMethods(open_engine, lambda _reason: None, HostModel(no_model))


async def call(methods: EngineMethods, name: str, params: dict[str, Any]) -> Any:
    return await methods.table()[name].handler(params)


async def test_every_method_of_the_protocol_is_served(methods: EngineMethods) -> None:
    await call(methods, "initialize", INITIALIZE)
    for name, params in GOOD.items():
        assert isinstance(await call(methods, name, params), dict), name
    assert set(methods.table()) == {"initialize", *GOOD}


@pytest.mark.parametrize("name", sorted(ROUTES))
def test_every_required_member_is_asked_for(name: str) -> None:
    model = ROUTES[name].params
    for member, field in model.model_fields.items():
        if field.is_required():
            without = {key: value for key, value in GOOD[name].items() if key != member}
            with pytest.raises(InvalidParamsError, match=member):
                parse_params(model, without)


@pytest.mark.parametrize(
    "change",
    [
        {"keep": -1},
        {"keep": "0"},
        {"keep": 1.5},
        {"messages": {}},
        {"messages": ["text"]},
        {"entries": []},
        {"entries": [1]},
        {"warmed_ms": "0"},
        {"session": ""},
        {"session": None},
        {"model": "m"},
        {"tools": [1]},
        {"outcomes": [{"call": 1, "kind": "lost"}]},
        {"outcomes": [{"kind": "applied"}]},
    ],
)
def test_wrong_shapes_of_assemble_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidParamsError, match="Invalid params: "):
        parse_params(AssembleParams, {**GOOD["context/assemble"], **change})


def test_an_error_names_the_first_members_and_never_their_values() -> None:
    with pytest.raises(InvalidParamsError) as caught:
        parse_params(SessionOpenParams, {"session": 1, "reason": "secret words"})
    text = str(caught.value)
    assert text.startswith("Invalid params: session: ")
    assert "and 2 more" in text
    assert "secret words" not in text


async def test_the_engine_gets_the_hosts_messages_as_they_came(tmp_path: Path) -> None:
    seen: list[AssembleParams] = []

    class Keeps(SmallEngine):
        def assemble(self, params: AssembleParams) -> AssembleResult:
            seen.append(params)
            return super().assemble(params)

    keeps = EngineMethods(
        lambda _params: Keeps(Config(home=tmp_path), NO_HOST),
        lambda _reason: None,
        HostModel(no_model),
    )
    await call(keeps, "initialize", INITIALIZE)
    await call(keeps, "session/open", GOOD["session/open"])
    params = {**GOOD["context/assemble"], "warmed_ms": 7, "unknown": 1}
    await call(keeps, "context/assemble", params)
    assert seen[0].messages[0] is params["messages"][0]
    assert seen[0].warmed_ms == 7


async def test_close_closes_once(methods: EngineMethods, tmp_path: Path) -> None:
    await call(methods, "initialize", INITIALIZE)
    methods.close()
    methods.close()
    assert read_journal(tmp_path) == ["initialize", "close"]
