"""Last uses of content."""

from __future__ import annotations

from typing import Any

import pytest

from foredeck.context.messages.items import Item, ToolUse
from foredeck.context.plan.ops import REASONING, Op, PieceRef
from foredeck.context.plan.plan import Plan
from foredeck.context.policies.policy import Rules
from foredeck.context.policies.uses import Uses
from foredeck.model.messages import MessageKey


class Chat:
    """Builds a conversation."""

    def __init__(self) -> None:
        self.plan = Plan()
        self.uses = Uses("/repo")

    def add(self, kind: Any, blocks: list[dict[str, Any]], **fields: Any) -> int:
        key = MessageKey(None, str(len(self.plan)))
        self.plan.append(Item(key, kind, blocks, **fields))
        self.uses.follow(self.plan)
        return len(self.plan) - 1

    def user(self, text: str = "go on") -> int:
        return self.add("user", [{"type": "text", "text": text}])

    def says(self, text: str, unsent: bool = False) -> int:
        return self.add("assistant", [{"type": "text", "text": text}], unsent=unsent)

    def runs(self, tool: str, output: str, **arguments: Any) -> PieceRef:
        id = f"c{len(self.plan)}"
        block = {"type": "toolCall", "id": id, "name": tool, "arguments": arguments}
        self.add("assistant", [block], calls=[ToolUse(id, tool, arguments)])
        return PieceRef(self.add("result", [], call_id=id, tool=tool, text=output))


def test_identifiers_that_stand_in_many_places_prove_nothing() -> None:
    chat = Chat()
    chat.user()
    refs = [chat.runs("bash", "make_one make_two", command=f"c {n}") for n in range(3)]
    chat.says("make_one make_two")
    assert [chat.uses.age(ref) for ref in refs] == [3, 2, 1]


def test_reads_of_a_turn_stay_while_it_reads_on_or_edits_one_after_the_other() -> None:
    chat = Chat()
    chat.uses.rules = Rules(prepared=True)
    chat.user()
    reads = [chat.runs("read", "text", path=f"src/{name}.py") for name in "abc"]

    def ages(cold: bool = False) -> list[int]:
        return [chat.uses.state(*ref, cold=cold)[1] for ref in reads]

    assert ages() == [0, 0, 0], "each further read is a use of the ones before"
    assert ages(cold=True) == [2, 1, 0], "but not where all is written anew"
    chat.runs("bash", "fine", command="make")
    assert ages() == [1, 1, 1]
    chat.runs("edit", "ok", path="src/a.py", oldText="w", newText="v")
    assert ages()[1:] == [0, 0], "so is an edit of one of them"
    chat.runs("edit", "ok", path="src/a.py", oldText="u", newText="v")
    assert ages()[1:] == [1, 1], "an edit of another file is none"
    chat.runs("read", "text", path="src/d.py")
    assert ages()[1:] == [2, 2], "nor is a read once the turn has edited"
    chat.user()
    assert ages()[1:] == [5, 4], "the end of the turn ends it"


def test_what_the_newest_turn_has_not_used_is_idle_and_aborted_answers_are_no_calls() -> None:
    chat = Chat()
    chat.user()
    ref = chat.runs("bash", "make_one make_two", command="a")
    chat.says("never", unsent=True)
    assert (chat.uses.calls, chat.uses.state(*ref)[2]) == (1, False)
    chat.user()
    assert chat.uses.state(*ref)[2]
    chat.says("make_one make_two")
    assert not chat.uses.state(*ref)[2]


@pytest.mark.parametrize(("slots", "left"), [((), {1, 2}), ((REASONING,), {2}), ((1,), {2})])
def test_reasoning_that_was_left_out_is_not_there_to_fold(
    slots: tuple[int, ...], left: set[int]
) -> None:
    chat = Chat()
    thought = {"type": "thinking", "thinking": "Hm.", "thinkingSignature": "c2ln"}
    call = {"type": "toolCall", "id": "w", "name": "write", "arguments": {"content": "x" * 900}}
    index = chat.add("assistant", [thought, call], signed=True)
    if slots:
        op = Op("folded", [{"keep": 1}], folded=slots)
        chat.plan.write(index, op)
        chat.uses.follow(chat.plan)
    assert {ref.slot for ref in chat.uses.foldable} == left
