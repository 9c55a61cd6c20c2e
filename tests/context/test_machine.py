"""A session in any order of events. After each, `invariants.check` looks at the whole prompt."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from context.driver import Host, Leaf
from context.messages import assistant, user
from context.playing import use_tool
from context.restored import check_restored
from context.sent import Sent, as_values
from context.strategies import WINDOWS, asides, tool_rounds, turn_ends
from examples import sessions
from foredeck.accounting.account import AccountingMethod
from foredeck.accounting.bookkeeping import account_of
from foredeck.accounting.stored import StoredCalls
from foredeck.context.messages.shape import Message

LAYOUTS = st.sampled_from(["anchored", "anchored", "anchored", "pools"])
ROUNDS = st.integers(0, 3).flatmap(tool_rounds)


class AnySession(RuleBasedStateMachine):
    """Pi, its shim and an engine, with whatever can happen to them."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.host = Host(Path(self.folder.name))
        self.leaves: list[Leaf] = []
        self.forks = 0

    def teardown(self) -> None:
        if self.host.past.sent:
            calls = StoredCalls(self.host.store, self.host.session)
            assert "unexplained" not in account_of(calls, AccountingMethod("ideal")).lost
        self.host.close()
        self.folder.cleanup()

    @initialize(window=WINDOWS, layout=LAYOUTS)
    def begin(self, window: int, layout: str) -> None:
        """The user's first words."""
        self.host.restart(layout=layout)
        self.host.set_window(window)
        self.host.add(user("Begin."))
        self.call()

    def call(self) -> Sent:
        """A model call by the engine's word."""
        self.leaves.append(self.host.leaf())
        sent = self.host.call()
        check_restored(self.host)
        return sent

    def ends_with_user(self) -> bool:
        """Whether the newest message waits for an answer."""
        return self.host.messages[-1].get("role") != "assistant"

    # What the model and the user do

    @rule(messages=ROUNDS)
    def use_tools(self, messages: list[Message]) -> None:
        """The model uses tools."""
        self.host.add(*messages)
        self.call()

    @rule(messages=turn_ends())
    def end_turn(self, messages: list[Message]) -> None:
        """The model answers and the user goes on."""
        self.host.add(*messages)
        self.call()

    @rule(
        tool=st.sampled_from(["activate", "deactivate", "pin", "unpin"]), which=st.integers(0, 12)
    )
    def use_context_tool(self, tool: str, which: int) -> None:
        """The model uses one of our tools."""
        use_tool(self.host, tool, which)
        self.call()

    @rule(messages=asides())
    def meet_others(self, messages: list[Message]) -> None:
        """Messages of other extensions, of the user's shell, of failures."""
        self.host.add(*messages, user("Well?"))
        self.call()

    # What happens to the engine

    @rule()
    def restart(self) -> None:
        """Another engine on the same store."""
        self.host.restart()

    @rule(per_turn=st.integers(1, 6), turns=st.integers(1, 4), layout=LAYOUTS)
    def reconfigure(self, per_turn: int, turns: int, layout: str) -> None:
        """Another engine with other settings."""
        self.host.restart(seed_window={"per_turn": per_turn, "turns": turns}, layout=layout)

    @rule(messages=ROUNDS, lost=st.integers(1, 2))
    def lose_answers(self, messages: list[Message], lost: int) -> None:
        """Answers that come too late: the shim falls back."""
        self.host.add(*messages)
        for _ in range(lost):
            self.host.lose()
            self.host.add(assistant("Hm."), user("And?"))
        self.told_as_sent(self.call(), lost)

    @rule(messages=ROUNDS)
    def lack_an_engine(self, messages: list[Message]) -> None:
        """A call while no engine runs."""
        self.host.close()
        self.host.add(*messages)
        self.host.away()
        self.host.add(assistant("Hm."), user("And?"))
        self.told_as_sent(self.call(), 1)

    @rule(messages=ROUNDS)
    def switch_off_and_on(self, messages: list[Message]) -> None:
        """A call while the user has switched foredeck off."""
        self.host.add(*messages)
        self.host.off()
        self.host.add(assistant("Hm."), user("And?"))
        self.told_as_sent(self.call(), 1)

    @rule(messages=ROUNDS)
    def stop_a_call(self, messages: list[Message]) -> None:
        """The user stops a call before it is sent."""
        self.host.add(*messages)
        self.host.abort()
        self.host.add(assistant("Ha", stop="aborted"), user("No: this way."))
        self.call()

    def told_as_sent(self, sent: Sent, count: int) -> None:
        """The records of calls without us show what the host sent then."""
        assert sent.call is not None
        shown = (self.host.shown(ordinal) for ordinal in range(sent.call - 1, 0, -1))
        hosts = (prompt for prompt in shown if prompt.record.is_host)
        for without in self.host.past.sent[-2 : -2 - count : -1]:
            assert as_values(next(hosts).messages) == as_values(without.prompt)

    # What happens to the list and around it

    @rule(data=st.data())
    def go_back(self, data: st.DataObject) -> None:
        """`/tree`: to where some earlier call was made."""
        self.host.go_to(data.draw(st.sampled_from(self.leaves)))
        if data.draw(st.booleans()):
            self.host.add(assistant("Here."), user("Another way."))
        self.call()

    @rule(share=st.floats(0.2, 1))
    def fork(self, share: float) -> None:
        """A new session with a part of this one's messages."""
        self.forks += 1
        count = max(1, int(len(self.host.messages) * share))
        model = self.host.model
        self.host = self.host.fork(f"fork{self.forks}", count)
        self.host.model = model
        self.host.add(user("In the copy."))
        self.leaves = []
        self.call()

    @precondition(lambda self: len(self.host.messages) > 4)
    @rule(keep=st.integers(0, 6))
    def compact(self, keep: int) -> None:
        """Pi puts a summary in place of all but the newest messages."""
        self.host.compact("What was done.", min(keep, len(self.host.messages)))
        self.host.add(user("Go on."))
        self.call()

    @rule(data=st.data())
    def edit(self, data: st.DataObject) -> None:
        """A context_edit of one message that the user or a tool has written."""
        places = [
            index
            for index, message in enumerate(self.host.messages)
            if message.get("role") in ("user", "toolResult")
        ]
        index = data.draw(st.sampled_from(places))
        content = [{"type": "text", "text": f"Edited {len(self.host.past.sent)}"}]
        self.host.change(index, content=content)
        self.call()

    @rule(id=st.sampled_from(["m1", "m2"]))
    def switch_model(self, id: str) -> None:
        """The user chooses a model."""
        self.host.model = {**(self.host.model or {}), "id": id}

    @rule(seconds=st.sampled_from([-5000, 10, 299, 301, 100_000]))
    def let_time_pass(self, seconds: int) -> None:
        """The clock moves, forwards or backwards."""
        self.host.wait(seconds)


AnySession.TestCase.settings = sessions(120)
TestAnySession = AnySession.TestCase
