"""A part that a session has beside its chat works through its hooks alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from context.conftest import NewHost
from context.driver import Host
from context.messages import assistant, result
from context.scenes import ask, finish
from context.sent import message_text
from foredeck.hosts.protocol import MemoryQuestion, SessionEventParams, ToolCallParams
from foredeck.model.records import NicknameDocument, nickname_id


class Feature:
    """On every hook."""

    name = "feature"
    facility = "findings"
    host: Host

    def __init__(self, lines: Sequence[str] = ()) -> None:
        self.lines = list(lines)
        self.notes: list[str] = []

    def text(self, limit: int) -> str:
        return f"section of {limit > 0}"

    def run(self, input: Mapping[str, Any], call: str) -> str:
        return f"{call}: {input['text']}"

    def questions(self) -> list[MemoryQuestion]:
        return [{"name": "f-1", "lines": ["Kept?"]}]

    def take_lines(self) -> Sequence[str]:
        lines, self.lines = self.lines, []
        return lines

    def turn_fields(self) -> Mapping[str, Any]:
        return {"task": "of the feature"}

    def inherit(self) -> None:
        workspace = self.host.state.objects.workspace
        workspace.put(NicknameDocument(id=nickname_id("heir"), object="chat:s").seal())

    def has_use(self, notes: Mapping[str, bool]) -> bool:
        return notes.get("seen", False)

    def described(self, name: str) -> str | None:
        return f"all of {name}" if name == "m-fea7" else None

    def begin(self) -> str:
        return "begun"

    def read_answer(self, text: str) -> None:
        self.notes.append(text)

    def read_result(self, tool: str, call: str, details: Any, note: Callable[[str], None]) -> str:
        note("seen")
        return f"{tool} {call} {details}"

    def status_line(self) -> str:
        return "at work"

    def settle(self) -> Sequence[str]:
        return ["settled"]

    def follow_work(self) -> None:
        self.notes.append("followed")

    def leave(self) -> None:
        self.notes.append("left")


def test_a_part_of_nobodys_hangs_on_every_hook(new_host: NewHost, tmp_path: Path) -> None:
    host, feature = (
        new_host(cwd=str(tmp_path), disk=True, tools={"tasks": "off"}),
        Feature(["news"]),
    )
    feature.host = host
    host.sections = [feature]
    told: list[str] = []
    assert host.state.inbox.pop_user_messages() == ["begun"]
    host.state.inbox.notify = told.append
    first = ask(host)
    assert "[foredeck] feature:\nsection of True" in message_text(first.prompt[0])
    assert "[foredeck] news" in message_text(first.prompt[-1])
    assert host.store.head(nickname_id("heir")) is not None
    assert told == ["settled"]
    host.observe(result("r", "probe", "seen"), {})
    assert told[1:] == ["probe r None"]
    answer = host.engine.tool_call(
        ToolCallParams(session=host.session, id="t", tool="feature", input={"text": "said"})
    )
    assert answer["text"] == "t: said"
    assert answer["questions"] == [{"name": "f-1", "lines": ["Kept?"]}]
    assert answer["tasks"] == {"line": "at work"}
    (file, *_) = (host.home / "switches").glob("*.json")
    assert "findings" in json.loads(file.read_text())["facilities"]
    assert message_text(host.tool("a", "activate", id="m-fea7")) == "all of m-fea7"
    finish(host)
    host.engine.session_event(
        SessionEventParams(session=host.session, kind="answer", message=assistant("Done."))
    )
    again = ask(host)
    assert "[foredeck] news" not in message_text(again.prompt[-1])
    assert {turn.fields["task"] for turn in host.store.query("turn")} == {"of the feature"}
    host.close()
    assert feature.notes == ["Done.", "followed", "left"]


class Broken:
    """Fails on every hook of the engine."""

    def _fail(self, *_arguments: Any) -> Any:
        raise LookupError("a fault of its own")

    begin = read_answer = read_result = settle = follow_work = leave = status_line = _fail


def test_where_a_part_fails_the_others_work_and_the_user_hears_once(
    new_host: NewHost, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    host, feature = new_host(cwd=str(tmp_path), disk=True, tools={"tasks": "off"}), Feature()
    feature.host = host
    host.sections = [Broken(), feature]
    told: list[str] = []
    host.state.inbox.notify = told.append
    ask(host)
    host.observe(result("r", "probe", "seen"), {})
    assert told == ["settled", "probe r None"]
    answer = host.engine.tool_call(
        ToolCallParams(session=host.session, id="t", tool="feature", input={"text": "said"})
    )
    assert answer["tasks"] == {"line": "at work"}
    finish(host)
    host.engine.session_event(
        SessionEventParams(session=host.session, kind="answer", message=assistant("Done."))
    )
    ask(host)
    host.close()
    assert feature.notes == ["Done.", "followed", "left"]
    (heard,) = [text for text in host.read if "Broken" in text]
    assert "goes on without it" in heard
    assert "begun" in host.read
    hooks = ("Beginning", "Answer", "Result", "Settling", "WorkF", "Leaving", "Status")
    assert all(f"Broken fails as {hook}" in caplog.text for hook in hooks)
