"""A session in any order of events whose turns hold sealed reasoning that binds nothing, as far as
anybody knows: some prompts are refused because of it."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from context.messages import thinking, user
from context.sent import as_values
from context.strategies import WINDOWS
from context.test_machine import LAYOUTS, ROUNDS, AnySession
from context.test_seals import BOUND, GPT
from examples import sessions
from foredeck.context.messages.shape import Message
from foredeck.model.records import ReasoningDocument, reasoning_id


class SealedSession(AnySession):
    """`AnySession` on a wire whose table row is free."""

    @initialize(window=WINDOWS, layout=LAYOUTS)
    def begin(self, window: int, layout: str) -> None:
        """The user's first words."""
        self.host.model = {**(self.host.model or {}), "api": GPT["api"], "provider": "openai"}
        self.host.restart(layout=layout)
        self.host.set_window(window)
        self.host.add(user("Begin."))
        self.call()

    @rule(messages=ROUNDS, late=st.booleans())
    def use_tools_with_reasoning(self, messages: list[Message], late: bool) -> None:
        """Steps with sealed reasoning, after a pause or not: then all that may fold does."""
        self.host.add(*self.sealed(messages))
        self.host.wait(100_000 if late else 1)
        self.call()

    @rule(messages=ROUNDS)
    def be_refused(self, messages: list[Message]) -> None:
        """The provider refuses a prompt, and Pi makes the call again if there is another."""
        self.host.add(*self.sealed(messages))
        self.host.wait(100_000)
        refused = self.call()
        before = self.host.past.sent[-2]
        if not self.host.refuse(BOUND):
            self.host.past.sent.append(refused)
            return
        self.leaves.pop()
        again = self.call()
        if not again.decision.is_rebase:  # In a window that is too small for them it may be one.
            assert as_values(again.prompt[: len(before.prompt)]) == as_values(before.prompt)
        assert again.record.parent == before.record.id
        self.forget()

    def forget(self) -> None:
        """The model is tried again in the next turn."""
        workspace, model = (
            self.host.state.objects.workspace,
            f"openai/{(self.host.model or {})['id']}",
        )
        workspace.put(ReasoningDocument(id=reasoning_id(model), model=model, binds=False).seal())
        workspace.commit()

    def sealed(self, messages: list[Message]) -> list[Message]:
        """The same as a model has sealed them on this wire."""
        maker = {**GPT, "model": (self.host.model or {})["id"]}
        return [
            {**message, **maker, "content": [thinking("", "e30="), *message["content"]]}
            if message["role"] == "assistant" and isinstance(message["content"], list)
            else message
            for message in messages
        ]


SealedSession.TestCase.settings = sessions(30)
TestSealedSession = SealedSession.TestCase
