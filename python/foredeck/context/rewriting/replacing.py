"""Replaces a span of messages by a text that covers it, except the user's short words, the current
question, and kept results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from foredeck.context.messages.items import Item, text_block
from foredeck.context.plan.ops import COVERED, MessageSpan, PieceRef, Say
from foredeck.context.rebase import first_mutable
from foredeck.context.rendering import RenderContext, render_dependents
from foredeck.context.state.chat import turn_of
from foredeck.context.state.facilities import StandIn, StandInKind, StandIns
from foredeck.context.wording import turns_span
from foredeck.model.messages import are_answered, exchanges
from foredeck.model.quoting import block

KEPT_CHARS = 1000
"""Longest user message that stays word for word."""

_HOW = {"observation": "from notes", "reflection": "condensed from notes"}
_HOW_TO_READ = (
    "How to read notes: where two differ, the newer one holds. Answer with the paths and names "
    'that they give, not in general, and see to blockers first. "(not in the sources: x)" means '
    "that no message has the name x."
)


@dataclass(frozen=True, slots=True)
class Cover:
    """A span, and the text that may replace what leaves."""

    stand_in: StandIn
    first: int
    until: int
    gone: tuple[int, ...]
    """The messages that leave."""
    text: str
    saving: int
    """Characters saved beyond what may fold anyway."""

    @property
    def ref(self) -> PieceRef:
        return PieceRef(self.first, COVERED)


@dataclass(frozen=True, slots=True)
class Replacer:
    """Finds texts that may replace spans, and puts them there."""

    context: RenderContext
    stand_ins: StandIns

    def find(
        self,
        foldable: Collection[PieceRef] = (),
        savings: Mapping[PieceRef, int] | None = None,
        *,
        free: bool,
        forced: bool = False,
    ) -> list[Cover]:
        """What may replace spans now, in order.

        `savings`: what folding saves instead. `free`: nothing behind is cached. `forced`: the
        prompt does not fit, so kept content may go.
        """
        covers: list[Cover] = []
        used = self.context.plan.observed
        usable = [each for each in self.stand_ins.known() if each.id not in used]
        # Whether they are due takes a look at the whole chat: not for a session that has none.
        if not usable:
            return []
        plan, tokens = self.context.plan, self.context.gauge.tokens
        covering = plan.chars_covering
        uncovered = plan.chars_sent - covering
        if not (forced or self.stand_ins.is_due(tokens(uncovered), tokens(covering))):
            return []
        newest_first = [s for s in usable[::-1] if free or forced or s.kind == "observation"]
        # What covers more goes before what covers less; of equals the newest.
        for stand_in in sorted(newest_first, key=lambda each: -len(each.covers)):
            new = self._cover(stand_in, foldable, savings or {}, forced=forced)
            if new is None:
                continue
            if all(new.until <= other.first or other.until <= new.first for other in covers):
                covers.append(new)
        return sorted(covers, key=lambda cover: cover.first)

    def place_until(self, fits: Callable[[], bool]) -> list[Cover]:
        """Replaces spans, oldest first, until the prompt fits."""
        placed: list[Cover] = []
        for each in () if fits() else self.find(free=True, forced=True):
            # Counted anew: where a text has taken the place of a read, a difference from that read
            # has become longer.
            if self._saving(each.gone, each.text, {}) > 0 and not fits():
                self.place(each)
                placed.append(each)
        return placed

    def place(self, made: Cover) -> None:
        """Puts the texts in, and omits what they replace."""
        self._see(made.stand_in)
        # What was found beside it may have taken the handle that its text was made with.
        items = self.context.plan.items[made.first : made.until]
        text = self._text(made.stand_in, items, made.first)
        covered = MessageSpan(made.first, made.until)
        say = Say("observation", [text_block(text)], covered, made.stand_in.id)
        cover(self.context, say, made.gone)

    def _cover(
        self,
        stand_in: StandIn,
        foldable: Collection[PieceRef],
        savings: Mapping[PieceRef, int],
        *,
        forced: bool,
    ) -> Cover | None:
        plan = self.context.plan
        span = span_of(stand_in, plan.places, plan.items)
        if span is None or not self._is_open(*span):
            return None
        first, until = span
        staying = set(self._held(first, until, foldable, forced=forced))
        gone = tuple(index for index in range(first, until) if index not in staying)
        if not any(plan.chars[index] for index in gone):
            return None
        text = self._text(stand_in, plan.items[first:until], first)
        return Cover(stand_in, first, until, gone, text, self._saving(gone, text, savings))

    def _saving(self, gone: Sequence[int], text: str, savings: Mapping[PieceRef, int]) -> int:
        leave = set(gone)
        saving = sum(self.context.plan.chars[index] for index in leave) - len(text)
        return saving - sum(saved for ref, saved in savings.items() if ref.message in leave)

    def _is_open(self, first: int, until: int) -> bool:
        """Seen, not bound by reasoning, and in no wider cover."""
        plan = self.context.plan
        if until > plan.last_assistant() or first < first_mutable(plan):
            return False
        if first < plan.compacted[0]:
            return False
        span = MessageSpan(first, until)
        return all(
            other.until <= first or until <= other.first or (span.holds(other) and other != span)
            for other in plan.observed.values()
        )

    def _held(
        self, first: int, until: int, foldable: Collection[PieceRef], *, forced: bool
    ) -> Iterable[int]:
        items = self.context.plan.items
        for start, end in self.context.branch.plan.runs:
            if start < until and first < end and not (first <= start and end <= until):
                yield from range(start, end)
        question = self.context.plan.newest_question
        for begins, *results in exchanges(items, first, until):
            item = items[begins]
            if item.kind == "assistant":
                in_use = (self._is_in_use(index, foldable, forced=forced) for index in results)
                if len(results) == len(item.calls) and any(in_use):
                    yield from (begins, *results)
            elif begins in (0, question) or (item.kind == "user" and item.chars <= KEPT_CHARS):
                yield begins

    def _is_in_use(self, index: int, foldable: Collection[PieceRef], *, forced: bool) -> bool:
        plan, sets = self.context.plan, self.context.sets
        op = plan.ops[index]
        if not op.shows:
            return False
        if op.subject in sets.pins or plan.last_use(index) > plan.last_assistant():
            return True
        is_kept = index in self.context.branch.kept and op.subject in sets.active
        return is_kept and PieceRef(index) not in foldable and not forced

    def _text(self, stand_in: StandIn, items: Sequence[Item], first: int) -> str:
        """`first`: the message at which `items` begin."""
        index, chat = self.context.objects.index, self.context.chat
        ordinal = index.by_object.get(stand_in.id, len(index) + 1)
        turns = turn_of(chat, items[0]), turn_of(chat, items[-1])
        # Those that are placed later come behind it, or say so themselves.
        leads = all(start >= first for start, _ in self.context.branch.plan.observed.values())
        heading = stand_in_heading(stand_in.kind, ordinal, *turns, leads=leads)
        return f"{heading}\n{block(stand_in.text)}"

    def _see(self, stand_in: StandIn) -> None:
        objects = self.context.objects
        if stand_in.id not in objects.index.by_object:
            head = objects.workspace.head(stand_in.id)
            if head is not None:
                objects.see_head(head)


def cover(context: RenderContext, say: Say, gone: Sequence[int]) -> None:
    """Puts the text where the last of `gone` was; all of them leave."""
    for index in gone:
        context.branch.release(index)
    # Where the last of them was: what comes before keeps its bytes, and the cache finds it.
    context.plan.cover(say, gone)
    render_dependents(context, gone)


def stand_in_heading(kind: StandInKind, ordinal: int, first: int, last: int, *, leads: bool) -> str:
    """`leads`: the first in the prompt, which explains how to read them."""
    turns = turns_span(first, last)
    heading = (
        f"[foredeck] {turns}, {_HOW[kind]} (@{ordinal}), not the user's words. "
        f'activate "@{ordinal} {turns.lower()}" shows {"them" if last > first else "it"} in full.'
    )
    return f"{heading}\n{_HOW_TO_READ}" if leads else heading


def span_of(
    stand_in: StandIn, places: Mapping[str, int], items: Sequence[Item]
) -> tuple[int, int] | None:
    """The span that it covers; None if the list lacks a message or orders them otherwise."""
    indexes = [places.get(address, -1) for address in stand_in.covers]
    if not indexes or indexes[0] < 0 or any(b <= a for a, b in pairwise(indexes)):
        return None
    first, until = indexes[0], indexes[-1] + 1
    inside = set(indexes)
    others = (items[index] for index in range(first, until) if index not in inside)
    if any(item.kind != "opaque" and not item.unsent for item in others):
        return None
    # Calls and results go together: a provider refuses one without the other.
    return (first, until) if _is_whole(items, first, until) else None


def _is_whole(items: Sequence[Item], first: int, until: int) -> bool:
    """Whether calls and results within the span pair up."""
    *_, is_answered = are_answered(items[first:until])
    after = items[until].kind if until < len(items) else "user"
    return is_answered and items[first].kind != "result" and after != "result"
