"""Which contents of a plan are still kept in view, and what of it may change."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from foredeck.context.plan.ops import PieceRef
from foredeck.context.plan.plan import Plan
from foredeck.model.call_values import Delta


@dataclass(slots=True)
class Retention:
    """Contents that the policy keeps, and what the next rebase may change."""

    plan: Plan
    contents: dict[int, int] = field(default_factory=dict)
    """Messages whose content is kept, with the object's handle."""
    recorded_released: set[int] = field(default_factory=set)
    """Messages of which the call records say already that their content is no longer kept."""
    candidates: dict[PieceRef, int] = field(default_factory=dict)
    """What the next rebase may change, and at which call of the branch that was first so."""
    _changes: dict[PieceRef, bool] = field(default_factory=dict)
    """What has become a candidate (True) since the last call record, or is none any longer."""
    _touched: set[int] = field(default_factory=set)
    """Messages that were kept or released since then."""
    _marks: tuple[int, int] = (0, 0)
    """How much was written into the plan and attributed by then."""

    def restore(self, released: AbstractSet[int], candidates: dict[PieceRef, int]) -> None:
        """The plan is what the call records say, and so is this."""
        self.recorded_released, self.candidates = set(released), dict(candidates)
        # `pop_released` counts on this: records name only what is not kept.
        for index, op in enumerate(self.plan.ops):
            if op.carries and op.subject is not None and index not in released:
                self.contents[index] = op.subject
        self._marks = len(self.plan.written), len(self.plan.attributed)

    def keep(self, index: int, ordinal: int) -> None:
        """Offer a message's content to the policy from now on."""
        self.contents[index] = ordinal
        self._touched.add(index)

    def release(self, index: int) -> None:
        """The opposite of `keep`, for `Branch` alone, which keeps the sets in step."""
        if self.contents.pop(index, None) is not None:
            self._touched.add(index)

    def use(self, base: int) -> None:
        """A later message says that its content is that of `base`: so that is kept."""
        subject = self.plan.ops[base].subject
        if subject is not None and base not in self.contents:
            self.keep(base, subject)

    def pop_released(self) -> Delta[int]:
        """Changes since the last call of which messages' content is not kept."""
        # Restoring a branch takes each message that carries an object's content for kept unless a
        # record says otherwise, so every one that is not is named once, for whatever reason.
        plan, (written, attributed) = self.plan, self._marks
        touched = self._touched.union(plan.written[written:], plan.attributed[attributed:])
        self._touched, self._marks = set(), (len(plan.written), len(plan.attributed))
        carrying = {index for index in touched if plan.ops[index].carries}
        gone = carrying - self.contents.keys() - self.recorded_released
        back = carrying & self.contents.keys() & self.recorded_released
        self.recorded_released |= gone
        self.recorded_released -= back
        return Delta(tuple(sorted(gone)), tuple(sorted(back)))

    def set_candidates(self, refs: AbstractSet[PieceRef], depth: int) -> None:
        """These are the candidates, and no others; `depth`: the call that this is decided for."""
        for ref in self.candidates.keys() - refs:
            del self.candidates[ref]
            self._changes[ref] = False
        for ref in refs - self.candidates.keys():
            self.candidates[ref] = depth
            self._changes[ref] = True

    def pop_candidates(self) -> Delta[PieceRef]:
        """Changes of the candidates since the last call."""
        changes, self._changes = self._changes, {}
        return Delta.of(changes)
