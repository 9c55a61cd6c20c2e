"""What the engine's answers change about a message list, held from call to call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from foredeck.context.messages.items import Block
from foredeck.hosts.pi.edits import apply_edits
from foredeck.hosts.pi.messages import Message
from foredeck.hosts.protocol import MessageEdits


@dataclass(frozen=True, slots=True)
class EditBook:
    """The edits, inserts and drops in force, by message index, as the shim's EditBook holds them.

    A book never changes: `cut` and `merged` give a new one.
    """

    edits: dict[int, list[Block]] = field(default_factory=dict)
    inserts: dict[int, list[Message]] = field(default_factory=dict)
    """Messages of ours, by the index of the message that they stand before."""
    drops: frozenset[int] = frozenset()
    _edited: dict[int, tuple[list[Block], Message, Message]] = field(
        default_factory=dict, repr=False, compare=False
    )
    """What edits have made, with the edit and the message that it was made of."""

    def cut(self, limit: int, *, ending: bool = False) -> EditBook:
        """The operations before `limit`; with `ending` also what is inserted there."""
        return EditBook(
            {i: blocks for i, blocks in self.edits.items() if i < limit},
            {i: messages for i, messages in self.inserts.items() if i < limit + ending},
            frozenset(i for i in self.drops if i < limit),
            self._edited,
        )

    def merged(self, answer: MessageEdits) -> EditBook:
        """The operations in force after an answer, which replaces all from its `from` on."""
        kept = self.cut(answer["from"])
        return EditBook(
            kept.edits | dict(answer["edits"]),
            kept.inserts | dict(answer["inserts"]),
            kept.drops | set(answer["drops"]),
            self._edited,
        )

    def apply(self, messages: Sequence[Message]) -> list[Message]:
        """The list that goes out. An edited message is the same object in every list until the
        edit changes, so that whoever reads list after list can tell by identity what is new."""
        shown = [self._shown(index, message) for index, message in enumerate(messages)]
        return apply_edits(shown, {}, self.inserts, self.drops)

    def _shown(self, index: int, message: Message) -> Message:
        recipe = self.edits.get(index)
        if recipe is None:
            return message
        known = self._edited.get(index)
        if known is None or known[0] is not recipe or known[1] is not message:
            made = apply_edits([message], {0: recipe}, {}, frozenset())[0]
            known = self._edited[index] = (recipe, message, made)
        return known[2]
