"""A part that a session has beside its chat works through its hooks alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from context.conftest import NewHost
from context.driver import Host
from context.scenes import ask, finish
from context.sent import message_text
from foredeck.hosts.protocol import MemoryQuestion, ToolCallParams
from foredeck.model.records import NicknameDocument, nickname_id


class Feature:
    """On every hook."""

    name = "feature"
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

    def settle(self) -> Sequence[str]:
        return ["settled"]

    def leave(self) -> None:
        self.notes.append("left")


def test_a_part_of_nobodys_hangs_on_every_hook(new_host: NewHost) -> None:
    host, feature = new_host(), Feature(["news"])
    feature.host = host
    host.sections = [feature]
    told: list[str] = []
    host.state.inbox.notify = told.append
    first = ask(host)
    assert "[foredeck] feature:\nsection of True" in message_text(first.prompt[0])
    assert "[foredeck] news" in message_text(first.prompt[-1])
    assert host.store.head(nickname_id("heir")) is not None
    assert told == ["settled"]
    finish(host)
    again = ask(host)
    assert "[foredeck] news" not in message_text(again.prompt[-1])
    (turn,) = host.store.query("turn")
    assert turn.fields["task"] == "of the feature"
    answer = host.engine.tool_call(
        ToolCallParams(session=host.session, id="t", tool="feature", input={"text": "said"})
    )
    assert answer["text"] == "t: said"
    assert answer["questions"] == [{"name": "f-1", "lines": ["Kept?"]}]
    host.close()
    assert feature.notes == ["left"]
