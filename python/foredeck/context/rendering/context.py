"""What rendering works on in one call."""

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
from foredeck.context.wording import said_of
from foredeck.model.documents import FileDocument
from foredeck.model.kinds import kind_of
from foredeck.model.messages import strings_in
from foredeck.model.names import identifiers


@dataclass(slots=True, eq=False)
class PromptNames:
    """Identifiers in a plan's messages, searched once per message."""

    _plan: Plan | None = None
    _own: dict[int, frozenset[str]] = field(default_factory=dict)
    """By message, in the host's form."""
    _written: dict[int, tuple[list[Block], frozenset[str]]] = field(default_factory=dict)

    def in_view(self, plan: Plan, without: Collection[int]) -> set[str]:
        """Identifiers in all that goes out but the messages `without`."""
        self._follow(plan)
        names: set[str] = set()
        for index in range(len(plan)):
            if index in without:
                continue
            blocks = plan.recipe(index)
            if blocks is None or any("keep" in block for block in blocks):
                names |= self.of(plan, index)
            else:
                self._own.pop(index, None)  # most messages of a long session are folded for good
            if blocks:
                names |= self._of_written(index, blocks)
        return names

    def of(self, plan: Plan, index: int) -> frozenset[str]:
        self._follow(plan)
        names = self._own.get(index)
        if names is None:
            item = plan.items[index]
            names = identifiers(item.text) if item.kind == "result" else _names(item.blocks)
            self._own[index] = names
        return names

    def _of_written(self, index: int, blocks: list[Block]) -> frozenset[str]:
        # The list of an operation never changes, so the very same list has the same names.
        cached, names = self._written.get(index, (None, frozenset()))
        if cached is not blocks:
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
    objects: Objects
    chat: Chat
    gauge: Gauge = field(default_factory=Gauge)
    names: PromptNames = field(default_factory=PromptNames)
    """The identifiers readable in the prompt."""
    min_saving_chars: int = 120
    digests: DigestSize = field(default_factory=DigestSize)
    """Length of digests."""
    summary_chars: int = 8000
    """Longest summary of a message whose middle folds."""
    branch: Branch = field(init=False)
    plan: Plan = field(init=False)
    sets: Sets = field(init=False)
    _began: tuple[int, int] = field(init=False)
    _nicknames: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        self.branch = self.chat.branch
        self.plan, self.sets = self.branch.plan, self.branch.sets
        self._began = len(self.plan.written), len(self.plan.attributed)

    @property
    def cwd(self) -> str:
        return self.objects.info.cwd

    def content(self, ordinal: int) -> str | None:
        """A file's last stored content; None for other objects and binary files.

        May be newer than `newest`: another session's, or of a result that no list has.
        """
        objects, entry = self.objects, self.objects.index.entries[ordinal]
        if entry.type != "file":
            return None
        pending = objects.workspace.pending.get(entry.object)
        document = pending or objects.store.get(entry.object, FileDocument)
        return None if document is None else document.content

    def newest(self, ordinal: int) -> int:
        """The newest version that the session knows."""
        return self.objects.index.entries[ordinal].newest.version

    def label(self, name: str) -> int | None:
        """The handle of a call, by provider id, or of a file, by absolute path."""
        return self.objects.index.by_label.get(name)

    def describe(self, ordinal: int) -> Mapping[str, Any]:
        if self._nicknames is None:
            self._nicknames = nicknames(self.objects.store)
        return described(self.objects, ordinal, self._nicknames)

    def said_of(self, ordinal: int) -> str:
        """Somebody's description of the object: nickname and own view."""
        fields = self.describe(ordinal)
        return said_of(fields, kind_of(str(fields.get("type"))).metadata_fields)

    @property
    def changed(self) -> set[int]:
        return set(self.plan.written[self._began[0] :])

    @property
    def attributed(self) -> set[int]:
        """Messages given to another object in this call."""
        return set(self.plan.attributed[self._began[1] :])

    def takes_lines(self, index: int) -> bool:
        """Whether `attach` accepts the message: a user's or a result."""
        kind = self.plan.items[index].kind
        return kind in ("user", "result") and not self.plan.is_omitted(index)

    def attach(self, index: int, line: str) -> None:
        """Adds a line, as its own block, to a message new in this call.

        First on a result, since text after it could pretend to be foredeck's.
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
    """The input of `wording.object_line`; `names` are all nicknames."""
    entry = objects.index.entries[ordinal]
    names = nicknames(objects.store) if names is None else names
    head = objects.workspace.head(entry.object)
    if head is None:
        return {}
    path = objects.name_of(entry) if entry.type == "file" else None
    names_of_object = {"path": path, "nickname": names.get(entry.object)}
    return {**head.fields, "type": head.type, **names_of_object}
