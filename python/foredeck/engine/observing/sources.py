"""The messages of a branch as an observer is shown them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from foredeck.context.cache.rebase import CHARS_PER_TOKEN
from foredeck.context.messages.conversation import Conversation
from foredeck.context.messages.items import Item
from foredeck.context.messages.observable import observable
from foredeck.context.state.session import Session
from foredeck.context.window.compactions import turn_of
from foredeck.observations.messages import SourceMessage

_OURS = "[foredeck]"
"""Begins what foredeck itself writes into a chat."""


@dataclass(slots=True)
class BranchSources:
    """The messages of the branch at hand; made once each, while the list only grows.

    Their tokens are counted once, by the rate at that time, so that what is pending is not counted
    anew.
    """

    session: Session
    _conversation: Conversation | None = None
    _made: list[SourceMessage] = field(default_factory=list)

    def messages(self) -> Sequence[SourceMessage]:
        """All of them, in the order of the list. It grows with that."""
        conversation = self.session.branch.conversation
        if conversation is not self._conversation or len(self._made) > len(conversation):
            self._conversation, self._made = conversation, []
        if len(self._made) < len(conversation):
            self._made += self._new(conversation.items, len(self._made))
        return self._made

    @property
    def rate(self) -> float:
        """Characters a token, as the newest call has it."""
        record = self.session.newest_record
        return CHARS_PER_TOKEN if record is None else record.stats.rate

    def _new(self, items: Sequence[Item], start: int) -> list[SourceMessage]:
        rate = self.rate
        # The arguments of a result stand in the answer that asked for it.
        first = next((i for i in range(start - 1, -1, -1) if items[i].kind == "assistant"), start)
        offset = turn_of(self.session, items[start]) - items[start].turn
        made = observable(
            items[first:],
            lambda chars: int(chars / rate),
            cwd=self.session.cwd,
            first_turn=offset + 1,
            is_ours=_is_ours,
        )
        return made[start - first :]


def _is_ours(item: Item) -> bool:
    """Whether foredeck has written it: a summary of its own, which the host shows as context."""
    if item.kind != "context":
        return False
    return any(_OURS in str(block.get("text") or "") for block in item.blocks)
