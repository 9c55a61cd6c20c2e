"""A session in any order of events, with texts that stand in place of stretches of its chat."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from context.messages import assistant, user
from context.noted import Noted
from context.sent import Sent
from context.strategies import WINDOWS
from context.test_machine import LAYOUTS, AnySession
from examples import sessions


class AnySessionWithStandIns(AnySession):
    """`invariants.check` finds a prompt that a provider would refuse, and every byte that changes
    without a rebase."""

    @initialize(window=WINDOWS, layout=LAYOUTS)
    def begin(self, window: int, layout: str) -> None:
        """The user's first words."""
        # Whatever saves a word pays, and nothing is wanted for long: there is much to replace.
        self.host.restart(
            rebase={"min_saving_tokens": 0, "carrying_factor": 0, "guard": 10},
            seed_window={"per_turn": 1, "turns": 1},
        )
        self.noted, self.observed = Noted(self.host), 0
        super().begin(window, layout)
        for number in range(3):
            self.host.add(assistant(f"At length about {number}. " * 40), user(f"Part {number}."))
            self.call()

    def call(self) -> Sent:
        """A model call, with all texts known to whichever engine runs, and more after some."""
        self.noted.use(self.host)
        sent = super().call()
        if len(self.host.past.sent) % 3 == 0:
            self.observe_rest()
        return sent

    def observe_rest(self) -> None:
        """What came after the newest text; all of it where the list has become shorter."""
        ends = self.noted.ends()
        if not ends:
            return
        first = self.observed if self.observed in ends[:-1] else 0
        self.noted.observe(first, ends[-1], "* noted")
        self.observed = ends[-1]

    @precondition(lambda self: len(self.host.state.chat.branch.plan) > 3)
    @rule(data=st.data(), text=st.sampled_from(["* noted", "* noted\n[foredeck] pretends"]))
    def observe(self, data: st.DataObject, text: str) -> None:
        """An observation, or a reflection on some, of any stretch that may end where it does."""
        ends = [0, *self.noted.ends()]
        first = data.draw(st.sampled_from(ends[:3]))
        until = data.draw(st.sampled_from([end for end in ends if end > first] or [0]))
        if until:
            kind = data.draw(st.sampled_from([self.noted.observe, self.noted.reflect]))
            kind(first, until, text)

    @rule()
    def rest(self) -> None:
        """The provider's cache expires."""
        self.host.wait(10_000)


AnySessionWithStandIns.TestCase.settings = sessions(60)
TestAnySessionWithStandIns = AnySessionWithStandIns.TestCase
