"""One model call during assembly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from foredeck.config import Config
from foredeck.context.digests import DigestSize
from foredeck.context.fitting import marks_below, usable_window
from foredeck.context.intake.take_in import Alignment
from foredeck.context.layouts import Layout
from foredeck.context.messages.items import Item
from foredeck.context.plan.ops import Say
from foredeck.context.policies.policy import Policy
from foredeck.context.rebase import WaterMarks
from foredeck.context.rendering import PromptNames, RenderContext
from foredeck.context.rewriting.refreshing import Finders
from foredeck.context.rewriting.replacing import Replacer
from foredeck.context.state.facilities import Facilities
from foredeck.context.state.gauge import Gauge
from foredeck.context.state.request import Request
from foredeck.context.state.session import Session
from foredeck.model.call_values import Decision, ReportedUsage

LIMIT_CHARS_PER_TOKEN = 4
"""For limits configured in tokens and kept in characters."""

SUMMARY_CHARS = 2000 * LIMIT_CHARS_PER_TOKEN
"""Longest summary that foredeck writes; at most a tenth of the window."""


@dataclass(slots=True)
class CallInProgress:
    session: Session
    request: Request
    layout: Layout
    """The configured one; the previous one while sent bytes must stay."""
    policy: Policy
    config: Config
    gauge: Gauge
    alignment: Alignment
    finders: Finders
    reported: ReportedUsage | None
    """The provider's count of the previous call."""
    first_new: int
    """The first message that no call has held."""
    first_changed_say: int
    """Where this call's say and omission decisions begin."""
    said_before: dict[int, list[Say]] | None = None
    """Says of the newest call that went out without foredeck; None if none did since its last
    own."""
    layout_changed: bool = False
    """Whether the layout changes at this call."""
    decision: Decision = field(default_factory=Decision)
    shorter_by: int = 0
    """Characters that a rebase has saved."""
    facilities: Facilities = field(default_factory=Facilities)
    items: Sequence[Item] = field(init=False)
    """The host's whole list."""
    window: int | None = field(init=False)
    marks: WaterMarks = field(init=False)
    """Between these shares of the window a rebase keeps the prompt."""
    context: RenderContext = field(init=False)
    replacer: Replacer | None = field(init=False)
    """Replaces spans by observations; None if they are off."""

    def __post_init__(self) -> None:
        model = self.request.model
        self.items = self.alignment.items
        self.window = usable_window(self.session.chat.compactions, model, self.gauge)
        self.marks = marks_below(self.config.rebase.high_water, model, self.window)
        self.start_rendering()

    @property
    def first_changed(self) -> int:
        """The first message that may go out differently; `first_new` if none does."""
        changed = min(self.context.changed, default=self.first_new)
        return min(changed, self.first_changed_say, self.first_new)

    @property
    def first_resent(self) -> int:
        """The first message whose bytes differ from the newest call."""
        if self.said_before is None:
            return self.first_changed
        before, now = self.said_before, self.context.plan.says
        moved = (index for index in before.keys() | now if before.get(index) != now.get(index))
        return min([self.first_new, *self.context.changed, *moved])

    def render_all(self) -> None:
        """All goes out as this call has it."""
        self.first_changed_say, self.said_before = 0, None

    def start_rendering(self) -> None:
        names, stand_ins = self.finders.uses.names, self.facilities.stand_ins
        self.context = rendering_of(self.session, self.config, self.gauge, names)
        self.replacer = None if stand_ins is None else Replacer(self.context, stand_ins)


def rendering_of(
    session: Session, config: Config, gauge: Gauge, names: PromptNames
) -> RenderContext:
    least = config.rebase.min_saving_tokens * LIMIT_CHARS_PER_TOKEN
    digests = DigestSize(config.digests.max_tokens * LIMIT_CHARS_PER_TOKEN)
    limits = least, digests, SUMMARY_CHARS
    return RenderContext(session.objects, session.chat, gauge, names, *limits)
