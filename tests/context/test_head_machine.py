"""A session in any order of events, with a head whose sections say something else at every call."""

from __future__ import annotations

from hypothesis.stateful import initialize

from context.heads import Counting
from context.sent import Sent, message_text
from context.strategies import WINDOWS
from context.test_machine import LAYOUTS, AnySession
from examples import sessions
from foredeck.context.head import head_opening


class AnySessionWithHead(AnySession):
    """`invariants.check` finds every byte that changes without a rebase; here, of the head too."""

    @initialize(window=WINDOWS, layout=LAYOUTS)
    def begin(self, window: int, layout: str) -> None:
        """The user's first words."""
        self.host.sections = [Counting("rules"), Counting("notes", lines=300)]
        super().begin(window, layout)

    def call(self) -> Sent:
        """A model call; a head stands first, once, or nowhere."""
        sent = super().call()
        heads = [n for n, m in enumerate(sent.prompt) if message_text(m).startswith(head_opening())]
        assert heads in ([], [0])
        assert bool(heads) == (self.host.state.chat.branch.plan.head is not None)
        return sent


AnySessionWithHead.TestCase.settings = sessions(100, 12)
TestAnySessionWithHead = AnySessionWithHead.TestCase
