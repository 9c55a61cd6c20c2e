"""What rendering works on at one call, and the names that can be read in the prompt as it is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from foredeck.context.digests import DigestSize
from foredeck.context.messages.items import Block, text_block
from foredeck.context.plan.ops import Op, keep_all
from foredeck.context.plan.plan import Plan
from foredeck.context.state.chat import Branch, Chat
from foredeck.context.state.descriptions import nicknames
from foredeck.context.state.gauge import Gauge
from foredeck.context.state.objects import Objects
from foredeck.context.state.sets import Sets
from foredeck.model.documents import FileDocument
from foredeck.model.messages import strings_in
from foredeck.model.names import identifiers


@dataclass(slots=True, eq=False)
class PromptNames:
    """The identifiers in the messages of a plan. Each message is searched once; a session keeps one
    of these for all of its calls."""

    _plan: Plan | None = None
    _own: dict[int, frozenset[str]] = field(default_factory=dict)
    """By message, those in it as the host has it."""
    _written: dict[int, tuple[list[Block], frozenset[str]]] = field(default_factory=dict)
    """By message, the blocks of ours that go out for it, and those in these."""

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
                held |= self._of_written(index, blocks)
        return held

    def of(self, plan: Plan, index: int) -> frozenset[str]:
        """Names in a message as the host has it."""
        self._follow(plan)
        names = self._own.get(index)
        if names is None:
            item = plan.items[index]
            names = identifiers(item.text) if item.kind == "result" else _names(item.blocks)
            self._own[index] = names
        return names

    def _of_written(self, index: int, blocks: list[Block]) -> frozenset[str]:
        """Names in blocks that are not the host's own."""
        # The list of an operation never changes, so the very same list has the same names.
        known, names = self._written.get(index, (None, frozenset()))
        if known is not blocks:
            names = _names(block for block in blocks if "keep" not in block)
            self._written[index] = blocks, names
        return names

    def _follow(self, plan: Plan) -> None:
        if self._plan is not plan:
            self._plan, self._own, self._written = plan, {}, {}


def _names(blocks: Iterable[Block]) -> frozenset[str]:
    texts = (text for block in blocks for text in _texts(block))
    return frozenset[str]().union(*map(identifiers, texts))


def _texts(block: Block) -> Iterable[str]:
    kind = block.get("type")
    if kind == "toolCall":
        return strings_in(block.get("arguments"))
    return strings_in(block.get(kind)) if kind in ("text", "thinking") else ()


@dataclass(slots=True)
class RenderContext:
    """What rendering works on at one call: the plan, what it may look up, and how much may stay."""

    objects: Objects
    chat: Chat
    gauge: Gauge = field(default_factory=Gauge)
    """Characters to tokens, for the model that will be called."""
    names: PromptNames = field(default_factory=PromptNames)
    """The identifiers that can be read in the prompt."""
    min_saving_chars: int = 120
    digests: DigestSize = field(default_factory=DigestSize)
    """How long the digest of a folded result may be."""
    summary_chars: int = 8000
    """Longest summary of a message whose middle folds."""
    branch: Branch = field(init=False)
    plan: Plan = field(init=False)
    """What goes out of the branch's messages."""
    sets: Sets = field(init=False)
    """The branch's pool, active and pinned set."""
    _began: tuple[int, int] = field(init=False)
    """How much was written into the plan and attributed before."""
    _nicknames: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        self.branch = self.chat.branch
        self.plan, self.sets = self.branch.plan, self.branch.sets
        self._began = len(self.plan.written), len(self.plan.attributed)

    @property
    def cwd(self) -> str:
        """The session's folder."""
        return self.objects.info.cwd

    def content(self, ordinal: int) -> str | None:
        """A file's content as it was stored last, by handle; None for any other object, and for
        what is not text. It may be newer than `newest` says: another session has stored it, or a
        tool of this one whose result no list has had yet."""
        objects, entry = self.objects, self.objects.index.entries[ordinal]
        if entry.type != "file":
            return None
        pending = objects.workspace.pending.get(entry.object)
        document = pending or objects.store.get(entry.object, FileDocument)
        return None if document is None else document.content

    def newest(self, ordinal: int) -> int:
        """The newest version of an object that the session knows, by handle."""
        return self.objects.index.entries[ordinal].newest.version

    def label(self, name: str) -> int | None:
        """The handle of a tool call, by the provider's id of it, or of a file, by its absolute
        path."""
        return self.objects.index.by_label.get(name)

    def describe(self, ordinal: int) -> Mapping[str, Any]:
        """What the line of an object's metadata is made of, by handle."""
        if self._nicknames is None:
            self._nicknames = nicknames(self.objects.store)
        return described(self.objects, ordinal, self._nicknames)

    @property
    def changed(self) -> set[int]:
        """The messages whose operation was decided anew in this call."""
        return set(self.plan.written[self._began[0] :])

    @property
    def attributed(self) -> set[int]:
        """The messages that show another object since this call, with the bytes that they had."""
        return set(self.plan.attributed[self._began[1] :])

    def takes_lines(self, index: int) -> bool:
        """Whether `attach` may be called for a message: what the user said, or a result."""
        kind = self.plan.items[index].kind
        return kind in ("user", "result") and not self.plan.is_omitted(index)

    def attach(self, index: int, line: str) -> None:
        """Put a line of ours on a message, as a block of its own.

        The message must be new in this call: what was sent is never touched. On a result the line
        comes first: what follows a line of ours may be anybody's text and pretend, what comes
        first cannot. The user's text stays first.
        """
        item, op = self.plan.items[index], self.plan.ops[index]
        assert op.form != "omitted"  # or the line would not go out
        own = op.blocks if op.blocks is not None else keep_all(item)
        block = text_block(line)
        blocks = [*own, block] if item.kind == "user" else [block, *own]
        self.plan.write(index, Op(op.form, blocks, op.shown, op.base, op.folded))


def described(
    objects: Objects, ordinal: int, names: Mapping[str, str] | None = None
) -> Mapping[str, Any]:
    """The fields of an object's newest version, with its type, its nickname, and what the model
    calls a file: what its line is made of (`wording.object_line`). `names`: all nicknames."""
    entry = objects.index.entries[ordinal]
    names = nicknames(objects.store) if names is None else names
    head = objects.workspace.head(entry.object)
    if head is None:
        return {}
    path = objects.name_of(entry) if entry.type == "file" else None
    named = {"path": path, "nickname": names.get(entry.object)}
    return {**head.fields, "type": head.type, **named}
