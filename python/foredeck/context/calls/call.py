"""One call of the model while it is assembled: what the steps hand on to each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from foredeck.context.compactions import SummaryAuthor
from foredeck.context.digests import DigestSize
from foredeck.context.fitting import marks_below, usable_window
from foredeck.context.head import HeadBudget
from foredeck.context.intake.alignment import Alignment
from foredeck.context.messages.items import Item
from foredeck.context.policies.policy import Policy
from foredeck.context.policies.uses import Uses
from foredeck.context.provider_cache import CacheRule
from foredeck.context.rebase import RebaseThresholds, WaterMarks
from foredeck.context.rendering.context import PromptNames, RenderContext
from foredeck.context.rendering.layouts import Layout
from foredeck.context.rewriting.current import RefreshFinder
from foredeck.context.rewriting.folding import FoldFinder
from foredeck.context.rewriting.replacing import Replacer
from foredeck.context.state.features import ContextFacilities
from foredeck.context.state.gauge import Gauge
from foredeck.context.state.opening import Session
from foredeck.context.state.request import Request
from foredeck.model.call_values import Decision, ReportedUsage
from foredeck.model.own_tools import DEFAULT_FACILITIES, definition_chars


@dataclass(frozen=True, slots=True)
class AssemblySettings:
    """What the user can change about assembling."""

    marks: WaterMarks = field(default_factory=WaterMarks)
    thresholds: RebaseThresholds = field(default_factory=RebaseThresholds)
    ending_share: float = 1.0
    """A turn is ended after a pause if by that at least this share of the chat can go; 1: never."""
    within_sealed_turns: bool = False
    """Whether bytes before sealed reasoning of the turn under way may change where that is not
    known to be refused."""
    cache_ttl_s: float | None = None
    """For how long the provider keeps a prompt, where the model does not say."""
    cache_rule: CacheRule | None = None
    """By which rule the provider keeps prompts, where the model does not say."""
    min_saving_chars: int = 120
    digests: DigestSize = field(default_factory=DigestSize)
    summary_chars: int = 8000
    """Longest summary that foredeck writes; never more than a tenth of the model's window."""
    automatic_summary: SummaryAuthor = "foredeck"
    """Who writes the summary of a compaction that the host makes by itself."""
    manual_summary: SummaryAuthor = "model"
    """Who writes that of one which the user asks for."""
    pastes: bool = True
    """Whether long texts of the user's become objects at once."""
    definition_chars: int = definition_chars(*DEFAULT_FACILITIES)
    """Of the definitions of our tools, for a host that does not say which tools it declares."""
    pause_minutes: int = 30
    """After how long a silence the user's message says what time it is; 0 for never."""
    head: HeadBudget = field(default_factory=HeadBudget)


@dataclass(slots=True)
class Finders:
    """What looks through the messages of a plan, and keeps what it has worked out of them. Each
    sees by itself where the session has gone to another plan."""

    uses: Uses
    """When each piece of content was last used."""
    folds: FoldFinder = field(default_factory=FoldFinder)
    refreshes: RefreshFinder = field(default_factory=RefreshFinder)


@dataclass(slots=True)
class CallInProgress:
    """A call from the host's request to its record."""

    session: Session
    request: Request
    layout: Layout
    """The layout that is configured; the one before it, as long as bytes must stay."""
    policy: Policy
    settings: AssemblySettings
    gauge: Gauge
    alignment: Alignment
    finders: Finders
    reported: ReportedUsage | None
    """What the provider has counted of the call before."""
    first_new: int
    """The first message that no call has held."""
    says_decided_from: int
    """From this message on the call decides which says and omitted there are."""
    layout_changed: bool = False
    """Whether another layout takes over at this call."""
    decision: Decision = field(default_factory=Decision)
    facilities: ContextFacilities = field(default_factory=ContextFacilities)
    """What the session has beside its chat."""
    items: Sequence[Item] = field(init=False)
    """The host's whole list."""
    window: int | None = field(init=False)
    """The tokens that a prompt may have; None where that is not known."""
    marks: WaterMarks = field(init=False)
    """Shares of this window between which a rebase keeps the prompt."""
    context: RenderContext = field(init=False)
    replacer: Replacer | None = field(init=False)
    """What replaces spans of the chat by observations; None where they are switched off."""

    def __post_init__(self) -> None:
        model = self.request.model
        self.items = self.alignment.items
        self.window = usable_window(self.session.chat.compactions, model, self.gauge)
        self.marks = marks_below(self.settings.marks, model, self.window)
        self.start_rendering()

    @property
    def first_changed(self) -> int:
        """The first message from which the list may go out differently than before, since its
        operation has changed, or what is said or left out there; `first_new` where nothing has.
        A layout that renders all at every call may have changed any of it."""
        if not self.layout.keeps_bytes:
            return 0
        changed = min(self.context.changed, default=self.first_new)
        return min(changed, self.says_decided_from, self.first_new)

    def start_rendering(self) -> None:
        """Begin to render the branch as it is now: nothing counts as changed by this call yet."""
        names, stand_ins = self.finders.uses.names, self.facilities.stand_ins
        self.context = rendering_of(self.session, self.settings, self.gauge, names)
        self.replacer = None if stand_ins is None else Replacer(self.context, stand_ins)


def rendering_of(
    session: Session, settings: AssemblySettings, gauge: Gauge, names: PromptNames
) -> RenderContext:
    """What rendering a session's branch may look up and change, for one model."""
    limits = settings.min_saving_chars, settings.digests, settings.summary_chars
    return RenderContext(session.objects, session.chat, gauge, names, *limits)
