"""docs/protocol.md and the models of what crosses the seam say the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NotRequired, get_origin, get_type_hints

import pytest

from foredeck.engine.engine import Engine
from foredeck.hosts.host import (
    CompleteParams,
    CompleteReply,
    ModelParams,
    ModelResult,
    NoModel,
    NotAsked,
)
from foredeck.hosts.protocol import DoctorParams, InitializeParams, OutcomeParams, Params
from foredeck.rpc.host_model import HostModel
from foredeck.rpc.server import ROUTES, EngineMethods

PAGE = Path(__file__, "../../../docs/protocol.md").resolve().read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### `([^`]+)`\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
OF_THE_ENGINE = dict(
    re.findall(r"^#### `([^`]+)`\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
)

PARAMS: dict[str, type[Params]] = {
    "initialize": InitializeParams,
    "ping": Params,
    "shutdown": Params,
    "doctor": DoctorParams,
    **{name: route.params for name, route in ROUTES.items()},
}

ASKED: dict[str, tuple[type[Params], type[Params]]] = {
    "host/model": (ModelParams, ModelResult),
    "host/complete": (CompleteParams, CompleteReply),
}

ANSWERS = {
    "initialize": Engine.initialize,
    "session/open": Engine.open_session,
    "session/history": Engine.take_history,
    "context/assemble": Engine.assemble,
    "context/refused": Engine.refused,
    "session/compact": Engine.compact,
    "tool/call": Engine.tool_call,
    "tool/prepare": Engine.prepare_tool,
    "command": Engine.command,
    "session/close": Engine.close_session,
}

Members = dict[str, bool]
"""The members of an object by name, and whether each is required."""


def objects(text: str) -> Iterator[Members]:
    """The JSON-like objects of a text, in order, with the members of their outermost level."""
    members: Members = {}
    depth, before, position = 0, "", 0
    tokens = re.compile(r'//[^\n]*|"(?:[^"\\]|\\.)*"\??|\S')
    while match := tokens.search(text, position):
        token, position = match.group(), match.end()
        if token.startswith("//"):
            continue
        if token in "{[":
            members = {} if depth == 0 else members
            depth += 1
        elif token in "}]":
            depth -= 1
            if depth == 0 and token == "}":
                yield members
        elif depth == 1 and token.startswith('"') and before in "{,":
            members[token.strip('?"')] = not token.endswith("?")
        before = token


def first_object(text: str) -> Members:
    """The first object of a text."""
    return next(objects(text[text.index("{") :]))


def of_model(model: type[Params]) -> Members:
    """The members of a model."""
    return {name: field.is_required() for name, field in model.model_fields.items()}


def test_the_page_names_every_method_and_no_other() -> None:
    methods = EngineMethods(
        lambda _params: pytest.fail("not called"),
        lambda _reason: None,
        HostModel(lambda *_: pytest.fail("not called")),
    )
    assert set(SECTIONS) == set(methods.table())


@pytest.mark.parametrize("name", sorted(PARAMS))
def test_the_params_of_a_method_are_those_of_its_model(name: str) -> None:
    assert first_object(SECTIONS[name]) == of_model(PARAMS[name])


@pytest.mark.parametrize("name", sorted(ASKED))
def test_what_the_engine_asks_is_what_its_models_say(name: str) -> None:
    params, result = ASKED[name]
    section = OF_THE_ENGINE[name]
    assert first_object(section) == of_model(params)
    assert first_object(section[section.index("→") :]) == of_model(result)
    assert set(ASKED) == set(OF_THE_ENGINE)


def test_the_errors_of_the_host_are_on_the_page() -> None:
    for error in (NoModel, NotAsked):
        assert f"| {error.code} |" in PAGE


def test_an_outcome_is_what_its_model_says() -> None:
    assert first_object(PAGE[PAGE.index("- Outcome: ") :]) == of_model(OutcomeParams)


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_the_answer_of_a_method_is_what_its_type_says(name: str) -> None:
    hints = get_type_hints(get_type_hints(ANSWERS[name])["return"], include_extras=True)
    typed = {member: get_origin(hint) is not NotRequired for member, hint in hints.items()}
    assert first_object(SECTIONS[name][SECTIONS[name].index("→") :]) == typed


def test_notifications_are_those_that_the_page_calls_so() -> None:
    listed = re.findall(r"^### `([^`]+)`", PAGE[PAGE.index("## Notifications of the shim") :], re.M)
    assert {name for name, route in ROUTES.items() if route.kind == "notification"} == set(listed)
