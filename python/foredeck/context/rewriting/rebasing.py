"""The rebase of one call: whether there is one, from which message on, and why."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from foredeck.context.cache.economics import RebaseOffer, RebaseThresholds, calls_until
from foredeck.context.cache.rebase import RebaseReason, WaterMarks, first_mutable, reason_to_rebase
from foredeck.context.plan.ops import PieceRef
from foredeck.context.rendering.layout import Layout, RenderContext
from foredeck.context.rewriting.collapsible import find_collapsible
from foredeck.context.rewriting.copies import (
    CurrentCopy,
    FindCopies,
    explain_copies,
    place_copies,
)
from foredeck.context.rewriting.costs import CallCosts, paying_rebase, priced
from foredeck.context.rewriting.ending import end_turn, ends_turn
from foredeck.context.rewriting.folding import (
    fold,
    fold_down,
    fold_pastes,
    foldable_chars,
    objects_to_shed,
    strip_reasoning,
)
from foredeck.context.rewriting.refresh import FindRefreshes, Refresh
from foredeck.context.rewriting.replacing import Replacement, Replacer
from foredeck.context.rewriting.runs import FoldRuns, no_runs
from foredeck.context.state.branch import Branch
from foredeck.model.call_values import Decision

Collapsible = Mapping[PieceRef, int]
"""Content that may go, with the characters that folding it would save."""


@dataclass(frozen=True, slots=True)
class RebaseSettings:
    """What the user can change about rebases."""

    marks: WaterMarks = field(default_factory=WaterMarks)
    thresholds: RebaseThresholds = field(default_factory=RebaseThresholds)


@dataclass(frozen=True, slots=True)
class Offered:
    """What may go at this call."""

    savings: Collapsible
    refreshes: Mapping[PieceRef, Refresh]
    texts: Sequence[Replacement]
    """What may replace spans of messages."""
    find_copies: FindCopies | None
    """Where nothing is cached: finds of which files there is to be one current copy."""


@dataclass(frozen=True, slots=True)
class Rebase:
    """Decides about the rebase of one call, and carries it out."""

    context: RenderContext
    layout: Layout
    costs: CallCosts
    settings: RebaseSettings
    replacer: Replacer | None = None
    """Finds what may replace spans of the chat; None where nothing ever does."""
    fold_runs: FoldRuns = no_runs
    """Replaces each run of folded calls from a message on by one text."""
    ending_share: float = 1.0
    """A turn is ended after a pause if by that at least this share of the chat can go; 1: never."""

    @property
    def branch(self) -> Branch:
        """The branch that the call is made on."""
        return self.context.branch

    def run(
        self,
        wanted: Collection[PieceRef],
        find: FindRefreshes | None,
        copies: FindCopies | None = None,
    ) -> Decision:
        """Rebase if that is free, pays or must be. The branch's ledger goes on by this call.

        `wanted`: what the policy says may go, beside what is no longer kept. `find`: finds
        the reads that may be brought up to date, given what goes. `copies`: finds of which files
        there is to be one current copy, where the cache holds nothing.
        """
        collapsible = find_collapsible(self.context, wanted)
        ends = ends_turn(self.context, self.costs, collapsible, self.ending_share)
        decide = partial(self._decide, collapsible, wanted, find, copies)
        decision = end_turn(self.context, decide) if ends else decide()
        changed_from = min(self.context.changed, default=len(self.branch.plan))
        self.branch.ledger = self.costs.ledger_after(self.branch, changed_from)
        return decision

    def _decide(
        self,
        collapsible: Collapsible,
        wanted: Collection[PieceRef],
        find: FindRefreshes | None,
        copies: FindCopies | None,
    ) -> Decision:
        branch, keeps_bytes = self.branch, self.layout.keeps_bytes
        refreshes = find(self.context, collapsible.keys()) if find and keeps_bytes else {}
        if refreshes:
            savings = {ref: refresh.saving for ref, refresh in refreshes.items()}
            collapsible = dict(sorted({**collapsible, **savings}.items()))
        replaced = self._replacements(wanted, collapsible) if keeps_bytes else {}
        if replaced:
            savings = {ref: saving for ref, (_, saving) in replaced.items()}
            collapsible = dict(sorted({**collapsible, **savings}.items()))
        # Before pricing: rent runs from the call at which a piece became collapsible.
        branch.retention.set_collapsible(collapsible.keys(), branch.depth + 1)
        texts = [made for made, _ in replaced.values()]
        offered = Offered(collapsible, refreshes, texts, copies if self.costs.inputs.lost else None)
        decision = self._fold(offered) if keeps_bytes else self._shed_objects(wanted)
        if decision.is_rebase and keeps_bytes and self.costs.strips_reasoning:
            strip_reasoning(self.context, decision.changed_from or 0)
        return decision

    def _replacements(
        self, wanted: Collection[PieceRef], collapsible: Collapsible
    ) -> dict[PieceRef, tuple[Replacement, int]]:
        """Texts that may take the place of stretches, each with what it saves beyond folding."""
        if self.replacer is None:
            return {}
        made = self.replacer.find(wanted, free=not self.costs.warm)
        priced = {each.ref: (each, self.replacer.saving(each, collapsible)) for each in made}
        least = self.context.min_saving_chars
        return {ref: pair for ref, pair in priced.items() if pair[1] >= least}

    def _shed_objects(self, wanted: Collection[PieceRef]) -> Decision:
        """A layout that renders all at every call need not wait for a rebase, and has nothing to
        fold: what may go, and what does not fit, is no longer active."""
        fold_pastes(self.context, [ref for ref in wanted if ref.slot])
        results = {ref.message for ref in wanted if not ref.slot}
        for index in results & self.branch.retention.contents.keys():
            self.branch.release(index)
        if self.costs.strips_reasoning and not first_mutable(self.branch.plan):
            strip_reasoning(self.context, 0)
        gone = objects_to_shed(
            self.context,
            fixed_chars=self.costs.around_chars,
            window=self.costs.inputs.window,
            marks=self.settings.marks,
        )
        for ordinal in gone:
            self.branch.release_object(ordinal)
        return Decision("rebase", "high-water", 0) if gone else Decision()

    def _fold(self, offered: Offered) -> Decision:
        """Fold in place what may go, from the first message on from which that is worth it."""
        costs, context, collapsible = self.costs, self.context, offered.savings
        reason, first = self._reason(collapsible)
        self.branch.rebase_in = None
        offer = self._offer(collapsible) if reason is None and costs.warm else None
        if offer is not None:
            reason, first = self._reason_of(offer), offer.index
        if reason is None:
            return Decision()
        texts = [made for made in offered.texts if made.first >= first]
        copies = self._find_copies(offered, texts)
        folded = self._let_go(offered, texts, copies, first)
        folded |= self._fold_more(reason, texts)
        runs = self.fold_runs(first)
        # A rebase that changes no byte is none.
        if not (folded or texts or copies or runs or costs.inputs.rewrites_all):
            return Decision()
        for index in folded:
            self.branch.release(index)
        changed_from = min(context.changed, default=costs.first_new)
        decision = Decision(
            "rebase",
            reason,
            0 if costs.inputs.layout_changed else changed_from,
            stand_ins=tuple(made.stand_in.id for made in texts),
            runs=len(runs) or None,
        )
        decision = explain_copies(decision, copies)
        return decision if offer is None else offer.explain(decision)

    def _find_copies(self, offered: Offered, texts: Sequence[Replacement]) -> list[CurrentCopy]:
        """The current copies of files at work, where there are to be any; none in what leaves."""
        gone = {index for made in texts for index in made.gone}
        found = offered.find_copies(self.context) if offered.find_copies else []
        return [copy for copy in found if copy.index not in gone]

    def _let_go(
        self,
        offered: Offered,
        texts: Sequence[Replacement],
        copies: Sequence[CurrentCopy],
        first: int,
    ) -> set[int]:
        """Fold what may go from message `first` on, and let texts take the place of stretches;
        returns the messages that were folded."""
        gone = {index for made in texts for index in made.gone}
        going = [ref for ref in offered.savings if ref.message >= first]
        going = place_copies(self.context, copies, going) if copies else going
        refs = [ref for ref in going if ref.message not in gone]
        folded = fold(self.context, self.layout, refs, offered.refreshes)
        # Last: bringing a read up to date may have folded an argument in one of these messages.
        for made in texts:
            self._place(made)
        return folded - gone

    def _place(self, made: Replacement) -> None:
        if self.replacer is not None:
            self.replacer.place(made)

    def _reason(self, collapsible: Collapsible) -> tuple[RebaseReason | None, int]:
        """Why a rebase is free or necessary, whatever it costs, and from which message on."""
        reason = reason_to_rebase(self.costs.inputs, self.settings.marks)
        if reason == "high-water" and self._is_futile(collapsible):
            # Sealed reasoning stands behind nearly everything: what could go now, one result at a
            # time, is what came last. A compaction does more, and is made before the window is
            # full.
            reason = None
        if reason is None and self.costs.rewritten is not None:
            return "history", self.costs.rewritten
        return reason, 0

    def _offer(self, collapsible: Collapsible) -> RebaseOffer | None:
        """The rebase that pays at this call; where none does, the branch notes when one may."""
        branch, costs, thresholds = self.branch, self.costs, self.settings.thresholds
        messages = priced(branch, costs, collapsible)
        offer = paying_rebase(branch, costs, thresholds, messages)
        if offer is None:
            branch.rebase_in = calls_until(messages, costs.prices, thresholds)
        return offer

    def _reason_of(self, offer: RebaseOffer) -> RebaseReason:
        """Why a rebase pays: what it changes may not be cached in any case."""
        reach = self.costs.reach
        if reach.rule == "none":
            return "no-cache"
        return "pays" if reach.hit(self.costs.first_new) > offer.index else "look-back"

    def _fold_more(self, reason: RebaseReason, texts: list[Replacement]) -> set[int]:
        """Above the high-water mark, go on down to the low one: results first, then stretches that
        a text can replace, whether it is due or not. What is placed joins `texts`."""
        context, fixed, marks = self.context, self.costs.around_chars, self.settings.marks
        window = self.costs.inputs.window
        tokens = context.gauge.prompt(context.plan, fixed)
        if not window or not (reason == "high-water" or tokens > marks.high * window):
            return set()
        folded = fold_down(context, self.layout, int(marks.low * window), fixed)
        if self.replacer is not None:
            room = int(marks.low * window)
            placed = self.replacer.place_until(
                lambda: context.gauge.prompt(context.plan, fixed) <= room
            )
            texts += placed
            folded -= {index for made in placed for index in made.gone}
        return folded

    def _is_futile(self, collapsible: Collapsible) -> bool:
        """Whether what may not be changed now keeps the prompt so near the high-water mark that it
        would be there again soon: nearer than half of the way down to the low one."""
        inputs, marks = self.costs.inputs, self.settings.marks
        enough = (marks.high + marks.low) / 2 * (inputs.window or 0)
        chars, held = foldable_chars(self.context, collapsible)
        return held and inputs.tokens - self.context.gauge.tokens(chars) > enough
