"""Last uses of content, and what the adaptive policy makes of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foredeck.config.model import AdaptiveSection
from foredeck.context.messages.items import Item, ToolUse
from foredeck.context.plan.ops import REASONING, Op, PieceRef
from foredeck.context.plan.plan import Plan
from foredeck.context.policies.built_in import Adaptive, FoldingPastes, SeedWindow
from foredeck.context.policies.policy import (
    ActiveContent,
    FoldablePiece,
    History,
    PolicyDecision,
    UseRule,
)
from foredeck.context.policies.uses import Uses
from foredeck.context.rebase import precedes_bound_turn
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


WORDS = st.sampled_from(["make_one", "make_2", "a", "_", "one", " ", "\n", "\\n", "C:\\", "."])
TEXTS = st.lists(WORDS, max_size=6).map("".join)


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(st.lists(TEXTS, max_size=8), TEXTS)
def test_an_edit_uses_the_newest_of_any_texts(texts: list[str], old: str) -> None:
    chat = Chat()
    chat.uses = Uses("/repo", UseRule(min_names=100))
    chat.user()
    refs = [chat.runs("bash", text, command="c") for text in texts]
    chat.runs("edit", "ok", path="a.txt", oldText=old, newText="b")
    holding = [ref for ref, text in zip(refs, texts, strict=True) if old.strip() and old in text]
    assert [ref for ref in refs if chat.uses.age(ref) == 0] == holding[-1:]


def test_two_rare_identifiers_are_a_use_and_one_is_not() -> None:
    chat = Chat()
    chat.user()
    both = chat.runs("bash", "make_one make_two", command="a")
    single = chat.runs("bash", "make_three", command="b")
    chat.says("I call make_one, make_two and make_three.")
    assert (chat.uses.age(both), chat.uses.age(single)) == (0, 1)


def test_identifiers_that_stand_in_many_places_prove_nothing() -> None:
    chat = Chat()
    chat.user()
    refs = [chat.runs("bash", "make_one make_two", command=f"c {n}") for n in range(3)]
    chat.says("make_one make_two")
    assert [chat.uses.age(ref) for ref in refs] == [3, 2, 1]


def test_naming_a_path_uses_what_shows_it_and_writing_marks_it_as_edited() -> None:
    chat = Chat()
    chat.user()
    shown = chat.runs("read", "text", path="src/a.py")
    other = chat.runs("read", "text", path="src/b.py")
    chat.runs("write", "ok", path="/repo/src/a.py", content="new")
    assert (chat.uses.age(shown), chat.uses.age(other)) == (0, 1)
    assert (chat.uses.state(*shown)[3], chat.uses.state(*other)[3]) == (True, False)


def test_reads_of_a_turn_stay_while_it_reads_on_or_edits_one_after_the_other() -> None:
    chat = Chat()
    chat.uses.rule = UseRule(prepared=True)
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


def test_another_conversation_is_read_anew() -> None:
    chat = Chat()
    chat.user()
    chat.runs("bash", "x" * 9, command="a")
    other = Chat()
    other.user()
    other.uses.follow(other.plan)
    chat.uses.follow(other.plan)
    assert (chat.uses.calls, chat.uses.by_ref) == (0, {})


def content(
    index: int, age: int, tokens: int = 1000, tool: str = "read", **more: Any
) -> ActiveContent:
    return ActiveContent(PieceRef(index), index, 0, 1, tokens * 4, tool, age, **more)


def decision_of(
    policy: Any, *contents: ActiveContent, cold: bool = False, pieces: Any = ()
) -> PolicyDecision:
    return policy.decide(History(contents, 1, 0, cold, {}, pieces))


@pytest.mark.parametrize(
    ("given", "cold", "gone"),
    [
        (content(1, 11), False, False),
        (content(1, 12), False, True),
        (content(1, 8, idle=True), False, False),
        (content(1, 9, idle=True), False, True),
        (content(1, 1, idle=True, tool="bash"), False, False),
        (content(1, 2, idle=True, tool="bash"), False, True),
        (content(1, 11, tool="bash"), False, False),
        (content(1, 13, idle=True, tool="bash", of_edited=True), False, False),
        (content(1, 23, of_edited=True), False, False),
        (content(1, 24, of_edited=True), False, True),
        (content(1, 6, 4000), False, True),
        (content(1, 23, 250), False, False),
        (content(1, 23, 10), False, False),
        (content(1, 7), True, False),
        (content(1, 8), True, True),
        (content(1, 7, tool="bash"), True, False),
        (content(1, 8, tool="bash"), True, True),
        (content(1, 23, of_edited=True), True, False),
        (content(1, 24, of_edited=True), True, True),
    ],
)
def test_unused_content_stays_as_long_as_its_size_is_worth(
    given: ActiveContent, cold: bool, gone: bool
) -> None:
    assert bool(decision_of(Adaptive(), given, cold=cold).foldable) is gone


def test_a_turn_that_will_hold_sealed_reasoning_is_the_time_to_let_go() -> None:
    held = content(1, 8)
    history = History([held], 1, 0, cold=False, state={}, closing=True)
    assert Adaptive().decide(history).foldable == {held.ref}
    assert not decision_of(Adaptive(), held).foldable


@pytest.mark.parametrize(
    ("kinds", "closing"),
    [
        (["user", "sealed", "user"], True),
        (["user", "sealed", "plain", "user"], True),
        (["user", "sealed", "user", "plain", "user"], False),
        (["user", "sealed"], False),
        (["user", "plain", "user"], False),
        (["user", "void", "user"], False),
        (["user"], False),
    ],
)
def test_a_turn_is_taken_to_be_like_the_one_before(kinds: list[str], closing: bool) -> None:
    chat = Chat()
    for kind in kinds:
        if kind == "user":
            chat.user()
        else:
            sealed, void = kind != "plain", kind == "void"
            chat.add("assistant", [], signed=sealed, unsent=void)
    assert precedes_bound_turn(chat.plan) is closing


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


def test_naming_a_path_is_no_use_of_earlier_arguments() -> None:
    chat = Chat()
    chat.user()
    chat.runs("write", "ok", path="src/a.py", content="x" * 300)
    chat.runs("edit", "ok", path="src/a.py", oldText="not there", newText="b")
    assert chat.uses.age(PieceRef(1, 1)) == 1


def foldable(kind: Any, age: int, **more: Any) -> FoldablePiece:
    fields = {"idle": False, "of_edited": False, "earlier_turn": False, **more}
    return FoldablePiece(PieceRef(3, 1), kind, 4000, age, **fields)


@pytest.mark.parametrize(
    ("piece", "gone"),
    [
        (foldable("old", 1), True),
        (foldable("argument", 4), False),
        (foldable("answer", 11, earlier_turn=True), False),
        (foldable("answer", 12, earlier_turn=True), True),
        (foldable("argument", 5), True),
        (foldable("argument", 99, of_edited=True), False),
        (foldable("argument", 100, of_edited=True), True),
        (foldable("thinking", 50), False),
        (foldable("thinking", 1, earlier_turn=True), True),
    ],
)
def test_pieces_go_by_their_kind(piece: FoldablePiece, gone: bool) -> None:
    assert bool(decision_of(Adaptive(), pieces=[piece]).foldable) is gone
    if piece.kind == "answer":
        whole = Adaptive(AdaptiveSection(fold_answers=False))
        assert not decision_of(whole, pieces=[piece]).foldable


@pytest.mark.parametrize("of_edited", [True, False])
def test_a_pause_takes_no_patience_with_edits(
    of_edited: bool,
) -> None:
    piece = foldable("argument", 4, of_edited=of_edited)
    assert not decision_of(Adaptive(), pieces=[piece]).foldable
    assert bool(decision_of(Adaptive(), pieces=[piece], cold=True).foldable) is not of_edited
    soon = Adaptive(AdaptiveSection(patience_edits=4))
    assert bool(decision_of(soon, pieces=[piece]).foldable) is of_edited


@pytest.mark.parametrize("policy", [Adaptive(), SeedWindow()])
@pytest.mark.parametrize(("age", "gone"), [(11, False), (12, True)])
def test_messages_go_by_one_rule_under_every_policy(policy: Any, age: int, gone: bool) -> None:
    piece = foldable("message", age, earlier_turn=True)
    assert not decision_of(policy, pieces=[piece]).foldable
    folding = FoldingPastes(policy, Adaptive())
    assert (folding.name, folding.use_rule is None) == (policy.name, False)
    assert decision_of(folding, pieces=[piece]).foldable == ({piece.ref} if gone else set())
