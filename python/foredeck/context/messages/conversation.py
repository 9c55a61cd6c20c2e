"""The message list of one branch as it is now: items, their parts, and what can be read in them.

Appending and rendering keep every look-up up to date; only a change of branch or history walks
the whole list, so the work of a call does not grow with the length of the session.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from foredeck.context.messages.items import ROOT_TIP, Block, Item, ToolUse, next_tip
from foredeck.context.messages.parts import Part, PieceRef, apply_recipe, recipe_chars
from foredeck.context.messages.seals import SealRule
from foredeck.model.call_changes import Delta
from foredeck.model.messages import MessageKey
from foredeck.model.own_tools import CONTEXT_TOOLS


@dataclass(slots=True)
class Conversation:
    """Items with their parts (`parts[i]` renders `items[i]`), and look-ups that follow from them.

    Messages are named by their index in the list throughout, objects by their handles.
    """

    items: list[Item] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    tips: list[str] = field(default_factory=list)
    seals: SealRule = field(default_factory=SealRule)
    """Which sealed reasoning keeps what precedes it as it is."""
    turn_ends: bool = False
    """While a rebase is made after which a word of ours ends the turn under way."""
    chars_host: int = 0
    """Characters if every message went out as the host has it."""
    chars_own: int = 0
    """Characters of `chars_host` that are calls of our tools and their results."""
    chars_sent: int = 0
    """Characters as the parts have it."""
    turn: int = 0
    results_in_turn: dict[int, int] = field(default_factory=dict)
    """User turn to the number of its results, those of `CONTEXT_TOOLS` left out."""
    holders: dict[int, list[int]] = field(default_factory=dict)
    """Ordinal of an object to the messages that show its content, in order."""
    texts: dict[str, set[int]] = field(default_factory=dict)
    """Hash of a readable text to the messages that show it."""
    carried: Counter[int] = field(default_factory=Counter)
    """By ordinal of an object, how many messages have its content, in view or folded."""
    wanted: dict[int, int] = field(default_factory=dict)
    """Messages whose content the policy still wants, with the object's ordinal."""
    expired: set[int] = field(default_factory=set)
    """Messages of which the call records say that nobody wants their content any more."""
    referred_at: dict[int, int] = field(default_factory=dict)
    """Message to the newest later one that refers to its content."""
    collapsible: dict[PieceRef, int] = field(default_factory=dict)
    """What may be folded, and at which call of the branch that was first so."""
    savings: dict[int, int] = field(default_factory=dict)
    """Characters that folding a message would save, as far as that was computed."""
    superseded: dict[int, frozenset[int]] = field(default_factory=dict)
    """By object, the messages that show it for which newer ones stand in, as far as that was
    looked for."""
    piece_savings: dict[int, tuple[frozenset[int], dict[PieceRef, int]]] = field(
        default_factory=dict
    )
    """By message: the pieces for which that was computed last, and what folding each would save."""
    names: dict[int, frozenset[str]] = field(default_factory=dict)
    """Identifiers in messages as the host has them, as far as they were looked for."""
    kept_names: Mapping[int, str] = field(default_factory=dict)
    """The same as an earlier process has found them, with spaces between them."""
    rendered_again: set[int] = field(default_factory=set)
    """Messages whose part has changed since `Uses` has looked last."""
    _sums: list[int] = field(default_factory=lambda: [0])
    """Characters that go out before each message; cut off where a message is rendered again."""
    _pictured: list[int] = field(default_factory=list)
    """Messages with images, so that none needs to be looked for."""
    _collapsible_changes: dict[PieceRef, bool] = field(default_factory=dict)
    _touched: set[int] = field(default_factory=set)
    """Messages whose part, or whose being wanted, has changed since the last call record."""
    _calls: dict[str, ToolUse] = field(default_factory=dict)
    """Calls of the newest assistant message."""

    @property
    def tip(self) -> str:
        """The rolling hash over all keys."""
        return self.tips[-1] if self.tips else ROOT_TIP

    def __len__(self) -> int:
        return len(self.items)

    def append(self, item: Item, part: Part | None = None, tip: str = "") -> None:
        """Add a message; its part is the host's own until `render` says otherwise. `part`: as the
        call records have it, where the branch is restored from them. `tip`: that of the list with
        the message, where it is known."""
        self._place(item)
        self.tips.append(tip or next_tip(self.tip, item.key))
        self.items.append(item)
        if item.has_image:
            self._pictured.append(len(self.items) - 1)
        chars = item.chars
        self.chars_host += chars
        self.chars_own += item.own_chars
        if part is None:
            self.parts.append(Part(chars=chars))
            self.chars_sent += chars
            return
        part.chars = chars if part.blocks is None else recipe_chars(part.blocks, item)
        self.parts.append(part)
        self.chars_sent += part.chars
        self._remember(len(self.parts) - 1)

    def render(self, index: int, part: Part) -> None:
        """Replace the part of one message."""
        self._forget(index)
        self.savings.pop(index, None)
        self.piece_savings.pop(index, None)
        self.rendered_again.add(index)
        self._touched.add(index)
        del self._sums[index + 1 :]
        part.chars = recipe_chars(part.blocks, self.items[index])
        self.chars_sent += part.chars - self.parts[index].chars
        self.parts[index] = part
        self._remember(index)

    def attribute(self, index: int, subject: int, version: int) -> None:
        """Take what a message shows as another object's, a version of which has it now. Not a byte
        changes."""
        self.render(index, replace(self.parts[index], subject=subject, version=version))
        if index in self.wanted:
            self.want(index, subject)

    def chars_before(self, index: int) -> int:
        """Characters that go out of the messages before `index`."""
        sums = self._sums
        for part in self.parts[len(sums) - 1 : index]:
            sums.append(sums[-1] + part.chars)
        return sums[index]

    def keys(self, start: int = 0) -> list[MessageKey]:
        """Keys of the messages from `start` on."""
        return [item.key for item in self.items[start:]]

    def images(self) -> Iterator[Block]:
        """The images that go out."""
        for index in self._pictured:
            item = self.items[index]
            if item.void or item.kind == "opaque":
                continue
            for block in apply_recipe(self.parts[index].blocks, item.blocks):
                if block.get("type") == "image":
                    yield block

    def newest_holder(self, ordinal: int) -> int | None:
        """The last message that shows an object's content, if any does."""
        holders = self.holders.get(ordinal)
        return holders[-1] if holders else None

    def newest_with(self, text_hash: str | None) -> int | None:
        """The last message in which a text of that hash can be read, if there is one."""
        return max(self.texts.get(text_hash or "", ()), default=None)

    def want(self, index: int, ordinal: int) -> None:
        """Offer a message's content to the policy from now on."""
        self.wanted[index] = ordinal
        self._touched.add(index)

    def unwant(self, index: int) -> None:
        """The opposite of `want`, for `Branch.release` alone: it keeps the sets in step."""
        if self.wanted.pop(index, None) is not None:
            self._touched.add(index)

    def refer(self, base: int, index: int) -> None:
        """Message `index` says that its content is that of `base`: a use, so `base` is wanted."""
        self.referred_at[base] = max(index, self.referred_at.get(base, base))
        subject = self.parts[base].subject
        if subject is not None and base not in self.wanted:
            self.want(base, subject)

    def mark_restored(self, expired: AbstractSet[int]) -> None:
        """The parts are what the call records say, and these messages are expired by them."""
        # Restoring has touched every part, but the records have all of that already.
        self.expired, self._touched = set(expired), set()
        self.find_references()

    def find_references(self) -> None:
        """Set `referred_at` from what the parts refer to."""
        self.referred_at = {
            part.base: index for index, part in enumerate(self.parts) if part.base is not None
        }

    def last_use(self, index: int) -> int:
        """The newest message at which the content of `index` was given or referred to."""
        return self.referred_at.get(index, index)

    def take_expired(self) -> Delta[int]:
        """Changes since the last call of which messages nobody wants.

        Restoring a branch takes each message that carries an object's content for wanted unless a
        record says otherwise, so every one that is not wanted must be named here once, for
        whatever reason.
        """
        carrying = {index for index in self._touched if self.parts[index].carries}
        self._touched = set()
        gone = carrying - self.wanted.keys() - self.expired
        back = carrying & self.wanted.keys() & self.expired
        self.expired |= gone
        self.expired -= back
        return Delta(tuple(sorted(gone)), tuple(sorted(back)))

    def set_collapsible(self, refs: AbstractSet[PieceRef], depth: int) -> None:
        """These, and no others, may be folded; `depth`: the call that this is decided for."""
        for ref in self.collapsible.keys() - refs:
            del self.collapsible[ref]
            self._collapsible_changes[ref] = False
        for ref in refs - self.collapsible.keys():
            self.collapsible[ref] = depth
            self._collapsible_changes[ref] = True

    def take_collapsible(self) -> Delta[PieceRef]:
        """Changes of what may be folded since the last call."""
        changes, self._collapsible_changes = self._collapsible_changes, {}
        return Delta.of(changes)

    def last_assistant(self) -> int:
        """The newest assistant message that was not aborted, -1 where there is none: results
        after it are in flight, the model has not seen them yet."""
        for index in range(len(self.items) - 1, -1, -1):
            item = self.items[index]
            if item.kind == "assistant" and not item.void:
                return index
        return -1

    def _place(self, item: Item) -> None:
        if item.kind == "user":
            self.turn += 1
        if item.kind == "assistant":
            self._calls = {call.id: call for call in item.calls}
        if item.kind == "result" and item.call_id in self._calls:
            item.arguments = self._calls[item.call_id].arguments
        item.turn = self.turn
        item.rank = self.results_in_turn.get(self.turn, 0)
        if item.kind == "result" and item.tool not in CONTEXT_TOOLS:
            self.results_in_turn[self.turn] = item.rank + 1

    def _remember(self, index: int) -> None:
        part = self.parts[index]
        if part.subject is not None and part.carries:
            self.carried[part.subject] += 1
        if part.base is not None:
            self.referred_at[part.base] = max(index, self.referred_at.get(part.base, part.base))
        if part.subject is not None:
            self.superseded.pop(part.subject, None)
        if part.subject is not None and part.shows:
            holders = self.holders.setdefault(part.subject, [])
            holders.append(index)
            # A rebase renders in any order, but `newest_holder` takes the last one.
            if len(holders) > 1 and holders[-2] > index:
                holders.sort()
        if part.text_hash is not None and part.shows:
            self.texts.setdefault(part.text_hash, set()).add(index)

    def _forget(self, index: int) -> None:
        part = self.parts[index]
        if part.subject is not None and part.carries:
            self.carried[part.subject] -= 1
            if not self.carried[part.subject]:
                del self.carried[part.subject]
        if part.base is not None and self.referred_at.get(part.base) == index:
            self._forget_reference(part.base, index)
        if part.subject is not None:
            self.superseded.pop(part.subject, None)
        if part.subject is not None and part.shows:
            holders = self.holders.get(part.subject, [])
            if index in holders:
                holders.remove(index)
            if not holders:
                self.holders.pop(part.subject, None)
        if part.text_hash is not None and part.shows:
            showing = self.texts.get(part.text_hash, set())
            showing.discard(index)
            if not showing:
                self.texts.pop(part.text_hash, None)

    def _forget_reference(self, base: int, index: int) -> None:
        """Message `index` refers to `base` no longer."""
        others = (i for i in range(index - 1, base, -1) if self.parts[i].base == base)
        newest = next(others, None)
        if newest is None:
            del self.referred_at[base]
        else:
            self.referred_at[base] = newest
