"""Names that can be read in the prompt as it is now."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from foredeck.context.messages.items import Block
from foredeck.context.plan.plan import Plan
from foredeck.model.messages import strings_in
from foredeck.model.names import identifiers


@dataclass(slots=True, eq=False)
class PromptNames:
    """The identifiers in the messages of a plan. Each message is searched once; a session keeps one
    of these for all of its calls."""

    kept: Mapping[int, str] = field(default_factory=dict)
    """Those in the host's messages as an earlier process has found them, with spaces between."""
    _plan: Plan | None = None
    _own: dict[int, frozenset[str]] = field(default_factory=dict)
    """By message, those in it as the host has it."""
    _written: dict[int, tuple[list[Block], frozenset[str]]] = field(default_factory=dict)
    """By message, the blocks of ours that go out for it, and those in these."""

    def take_over(self, plan: Plan, kept: Mapping[int, str]) -> None:
        """Go on with what an earlier process has found in this plan's messages."""
        self._follow(plan)
        self.kept = kept

    def found(self, plan: Plan) -> dict[int, frozenset[str] | str]:
        """By message, all that was found of a plan so far; nothing where that is another plan."""
        return {**self.kept, **self._own} if plan is self._plan else {}

    def in_view(self, plan: Plan, without: Collection[int]) -> set[str]:
        """The identifiers in everything that goes out, except in the messages `without`."""
        self._follow(plan)
        held: set[str] = set()
        for index in range(len(plan)):
            if index in without:
                continue
            blocks = plan.recipe(index)
            if blocks is None or any("keep" in block for block in blocks):
                held |= self.of(plan, index)
            else:
                self._own.pop(index, None)  # most messages of a long session are folded for good
            if blocks:
                held |= self._of_written(plan, index, blocks)
        return held

    def of(self, plan: Plan, index: int) -> frozenset[str]:
        """Names in a message as the host has it."""
        self._follow(plan)
        names = self._own.get(index)
        if names is None:
            kept = self.kept.get(index)
            item = plan.items[index]
            if kept is not None:
                names = frozenset(kept.split())
            else:
                names = identifiers(item.text) if item.kind == "result" else _names(item.blocks)
            self._own[index] = names
        return names

    def _of_written(self, plan: Plan, index: int, blocks: list[Block]) -> frozenset[str]:
        """Names in blocks that are not the host's own."""
        self._follow(plan)
        # The list of an operation never changes, so the very same list has the same names.
        known, names = self._written.get(index, (None, frozenset()))
        if known is not blocks:
            names = _names(block for block in blocks if "keep" not in block)
            self._written[index] = blocks, names
        return names

    def _follow(self, plan: Plan) -> None:
        if self._plan is not plan:
            self._plan, self.kept, self._own, self._written = plan, {}, {}, {}


def _names(blocks: Iterable[Block]) -> frozenset[str]:
    texts = (text for block in blocks for text in _texts(block))
    return frozenset[str]().union(*map(identifiers, texts))


def _texts(block: Block) -> Iterable[str]:
    kind = block.get("type")
    if kind == "toolCall":
        return strings_in(block.get("arguments"))
    return strings_in(block.get(kind)) if kind in ("text", "thinking") else ()
