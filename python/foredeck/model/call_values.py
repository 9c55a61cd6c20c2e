"""Values inside a call record, each with its stored form, whose names and positions stay.

Named tuples, since opening a session makes thousands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, Literal, NamedTuple, TypeVar

V = TypeVar("V")
Stored = Mapping[str, Any]


@cache
def _stored_fields(kind: Any) -> list[tuple[str, Any]]:
    return list(kind._field_defaults.items())


def read_stored(kind: Callable[..., V], stored: Stored) -> V:
    return kind(
        *[
            default if (value := stored.get(name)) is None else value
            for name, default in _stored_fields(kind)
        ]
    )


def _written(value: Any, *always: str) -> dict[str, Any]:
    pairs = zip(_stored_fields(value.__class__), value, strict=True)
    return {
        name: list(each) if isinstance(each, tuple) else each
        for (name, default), each in pairs
        if name in always or each != default
    }


DecisionKind = Literal["append", "rebase", "host"]

ADOPTED = "adopted"
"""Reason of a call older than foredeck."""

CHARS_PER_TOKEN = 3.5
"""An estimate until the provider reports; code has fewer than prose."""

UNSENT = frozenset({"fallback", "aborted", "refused"})
"""Outcomes of calls whose answer never went out, or was refused."""

REWRITTEN = "rewritten"
"""Outcome: another extension changed the request, or the previous one."""


REASONS: dict[str, str] = {
    "cold": "the provider's cache had expired, so rewriting cost nothing extra",
    "model": "another model was chosen, whose cache held nothing of it",
    "history": "the host had changed what was sent before",
    "system": "other tools or instructions had come before the chat, so nothing of it was cached",
    "layout": "another layout was configured",
    "withdrawn": "what you have taken back, or what has changed, had to leave the head",
    "pays": "it pays",
    "look-back": "the provider's cache would not have found what stood there anyway",
    "no-cache": "the model has no prompt cache, so rewriting costs nothing extra",
    "high-water": "the prompt would have filled too much of the model's window",
    "tier": "each later call would have cost the price of longer prompts",
    "window": "the prompt would not have fitted the window",
    "off": "foredeck was switched off",
    "timeout": "the engine did not answer in time",
    "away": "the engine did not run",
}
"""Why a prompt was rewritten, or went out without foredeck, within a sentence."""
SHORT_REASONS: dict[str, str] = {
    "cold": "cache expired",
    "model": "other model",
    "history": "changed history",
    "system": "other tools",
    "layout": "other layout",
    "withdrawn": "taken back",
    "pays": "it pays",
    "look-back": "out of the cache's reach",
    "no-cache": "no cache",
    "high-water": "long prompt",
    "tier": "price tier",
    "window": "window full",
}
"""Short forms for tables."""
LOSSES: dict[str, str] = {
    "rebase: free": "rewriting for free",
    "rebase: paid": "rewriting that pays",
    "rebase: forced": "rewriting that had to be",
}
"""Causes of lost cache hits that the user knows by other words."""


class Decision(NamedTuple):
    """A call's decision and its reason.

    `append`: earlier bytes stayed. `rebase`: rewritten from `changed_from` on. `host`: sent without
    foredeck.
    """

    kind: DecisionKind = "append"
    reason: str | None = None
    changed_from: int | None = None
    edited: int | None = None
    carrying_cost: int | None = None
    """Reading the candidates so far, in tokens of uncached input."""
    rewrite_cost: int | None = None
    """Rewriting the rest, in the same tokens."""
    reasoning_cost: int | None = None
    """Generating the reasoning that is lost, in the same tokens."""
    factor: float | None = None
    """Share of these costs that was enough, where that decided: a turn that binds began."""
    compaction: str | None = None
    """Id of the compaction that made the prompt fit."""
    covers: Sequence[str] = ()
    """Ids of the stand-ins that replaced messages at this call."""
    call_groups: int | None = None
    turn_ended: bool | None = None
    """Whether a say ended the current turn."""

    @property
    def is_rebase(self) -> bool:
        """Whether sent bytes changed."""
        return self.kind == "rebase"

    @property
    def is_host(self) -> bool:
        """Whether the call went out without foredeck."""
        return self.kind == "host"

    @property
    def host_words(self) -> str:
        """How a user reads a call without foredeck; else empty."""
        if not self.is_host:
            return ""
        return "before foredeck" if self.reason == ADOPTED else "without foredeck"

    @property
    def short_words(self) -> str:
        if not self.is_rebase:
            return self.host_words
        return f"rewritten: {SHORT_REASONS.get(self.reason or '', self.reason)}"

    @property
    def weighed(self) -> dict[str, int]:
        """A rebase's costs, in tokens of uncached input."""
        names = ("carrying_cost", "rewrite_cost", "reasoning_cost")
        weighed = {name: getattr(self, name) for name in names}
        return {name: value for name, value in weighed.items() if value is not None}

    def to_record(self) -> dict[str, Any]:
        return _written(self._replace(covers=tuple(self.covers)), "kind")


class CallStats(NamedTuple):
    """Size of the prompt and contents of the session, after the decision."""

    messages: int = 0
    chars_host: int = 0
    """Characters of the host's own prompt, with system prompt and tools."""
    chars_sent: int = 0
    """Characters sent."""
    rate: float = 0.0
    """Characters per token at the time; 0 if not recorded."""
    reports: int = 0
    """Provider reports behind `rate`; 0: an estimate."""
    images: int = 0
    image_tokens: int = 0
    """Tokens of the images; in characters each counts alike."""
    withheld: int = 0
    """Characters of reasoning that the provider withholds and does not count."""
    rebase_in: int | None = None
    """Least calls until a rebase pays, if known."""
    objects: int = 0
    active: int = 0
    pinned: int = 0
    folded: int = 0
    """Objects whose content was folded."""
    shorter_by: int = 0
    """Characters saved by a rebase."""

    @classmethod
    def from_record(cls, stored: Stored) -> CallStats:
        images, image_tokens = stored.get("images") or (0, 0)
        return read_stored(cls, {**stored, "images": images, "image_tokens": image_tokens})

    def to_record(self) -> dict[str, Any]:
        sizes = "messages", "chars_host", "chars_sent", "rate", "reports"
        sets = "objects", "active", "pinned", "folded"
        rest = self._replace(images=0, image_tokens=0, rebase_in=self.rebase_in or None)
        images = {"images": [self.images, self.image_tokens]} if self.images else {}
        return _written(rest, *sizes, *sets) | images


DEFAULT_READ, DEFAULT_WRITE, DEFAULT_OUTPUT = 0.1, 1.25, 5.0
"""Default prices relative to uncached input, of a provider that charges for writing."""

DEFAULT_TTL_S = 300
"""Default cache lifetime in seconds."""

PriceTier = Sequence[float]
"""For prompts of more tokens than the first number: prices of uncached input, a cached and a
written token."""


def tier_of(tiers: Iterable[V], tokens: float, above: Callable[[V], float]) -> V | None:
    """The tier whose prices hold for a prompt of this size; None below all."""
    return max((tier for tier in tiers if tokens > above(tier)), key=above, default=None)


class CalledModel(NamedTuple):
    """The model called; unnamed if unknown."""

    name: str = ""
    """`provider/id`."""
    api: str = ""
    window: int | None = None
    """In tokens."""
    read: float = DEFAULT_READ
    write: float = DEFAULT_WRITE
    """Price of a written token."""
    guessed: bool = False
    """Whether `read` and `write` are defaults."""
    ttl_s: float | None = None
    """Cache lifetime in seconds, if known."""
    input_price: float = 0.0
    tiers: Sequence[PriceTier] = ()
    """Prices of longer prompts."""

    def to_record(self) -> dict[str, Any]:
        """As stored; empty without a model."""
        return _written(self, "name", "api", "window", "read", "write") if self.name else {}


class ReportedUsage(NamedTuple):
    """The provider's token counts of an earlier call."""

    call: int
    """Its ordinal."""
    read: int
    written: int
    fresh: int
    model: CalledModel | None = None
    """The model that answered, if not the recorded one."""

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> ReportedUsage:
        model = read_stored(CalledModel, row[_COUNTS]) if len(row) > _COUNTS else None
        return cls(*row[:_COUNTS])._replace(model=model)

    def to_row(self) -> list[Any]:
        counts = list(self[:_COUNTS])
        return counts if self.model is None else [*counts, self.model.to_record()]


_COUNTS = 4


class PromptTokens(NamedTuple):
    """Tokens of a prompt by cache treatment."""

    read: int
    written: int
    fresh: int
    """Neither cached nor written."""

    def cost(self, model: CalledModel) -> float:
        """Cost in tokens of uncached input of a short prompt."""
        total = self.read + self.written + self.fresh
        none = (0, 1.0, model.read, model.write)
        _, fresh, read, write = tier_of(model.tiers, total, itemgetter(0)) or none
        return self.read * read + self.written * write + self.fresh * fresh


class CachePrediction(NamedTuple):
    """Expected cache behaviour of a call; all None without a prediction."""

    rule: str | None = None
    """The provider's cache rule."""
    hit: int | None = None
    """Messages in the cached prefix; -1: not even what precedes them."""
    read: int | None = None
    """Cached tokens."""
    written: int | None = None
    """Tokens written to the cache."""
    fresh: int | None = None
    """Other tokens."""
    marked: int | None = None
    """Number of messages before an additional cache marker."""
    warmed_ms: int = 0
    """When the host last renewed the cache; 0: never."""
    reported: ReportedUsage | None = None
    """The provider's counts of the previous call."""
    baseline: PromptTokens | None = None
    """Tokens of the host alone."""
    around: str = ""
    """A hash of what precedes the chat."""

    @classmethod
    def from_record(cls, stored: Stored | None) -> CachePrediction:
        """The inverse of `to_record`; empty for None."""
        if not stored:
            return NO_PREDICTION
        reported, baseline = stored.get("reported"), stored.get("baseline")
        return read_stored(cls, stored)._replace(
            reported=ReportedUsage.from_row(reported) if reported else None,
            baseline=PromptTokens(*baseline) if baseline else None,
        )

    def to_record(self) -> dict[str, Any] | None:
        """As stored; None without a prediction."""
        counts = "hit", "read", "written", "fresh"
        reported = {} if self.reported is None else {"reported": self.reported.to_row()}
        rest = _written(self._replace(reported=None), "rule", *counts)
        return None if self.rule is None else rest | reported


NO_PREDICTION = CachePrediction()


class Ack(NamedTuple):
    call: int
    """Its ordinal."""
    outcome: str
    """`applied`, `aborted`, `fallback`, `refused`, or `rewritten`."""
    detail: str = ""
    """For `rewritten`: what another extension changed."""

    def to_row(self) -> list[Any]:
        return list(self) if self.detail else list(self[:2])


class BranchCost(NamedTuple):
    """Cost of a branch so far, in tokens of uncached input."""

    baseline: float = 0.0
    """With nothing folded."""
    actual: float = 0.0
    """As sent."""
    left: int = 0
    """Characters that the host would have compacted by now."""

    def after(self, baseline: float, actual: float) -> BranchCost:
        """With one more call; rounded as stored."""
        return BranchCost(
            round(self.baseline + baseline, 1), round(self.actual + actual, 1), self.left
        )

    def to_record(self) -> dict[str, float]:
        return _written(self, "baseline", "actual")


class ModelSpending(NamedTuple):
    """Cost of a session's calls to one model, in tokens of uncached input."""

    model: str
    price: float
    """Per million tokens, in the host's currency; 0: unknown."""
    calls: int
    plain: float
    """What the host's own prompts would have cost."""
    ours: float

    def less(self, before: ModelSpending | None) -> ModelSpending:
        """What was added since an earlier sum."""
        if before is None:
            return self
        calls, plain, ours = (now - then for now, then in zip(self[2:], before[2:], strict=True))
        return self._replace(calls=int(calls), plain=plain, ours=ours)


Form = Literal["host", "full", "same", "diff", "reference", "note", "omitted", "folded"]
"""How a message goes out; see `Form` in `context/plan/ops.py`."""


_WITHOUT_FOLDED = 7


class OpRow(NamedTuple):
    """An operation (`context.plan.ops`) as stored."""

    message: int
    """Its index."""
    form: Form
    packed: list[Any] | None
    """Its recipe, long texts in blobs; None: the host's."""
    subject: int | None = None
    """Handle of the object that it carries."""
    version: int | None = None
    """The session's number of the version."""
    base: int | None = None
    text_hash: str | None = None
    folded: tuple[int, ...] = ()
    """The folded pieces."""

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> OpRow:
        if len(row) == _WITHOUT_FOLDED:
            return cls(*row)
        return cls(*row[:_WITHOUT_FOLDED], tuple(row[_WITHOUT_FOLDED]))  # type: ignore[call-arg]

    @property
    def shows(self) -> bool:
        """Whether the subject's content can be read here, with the base for a difference."""
        return self.form in ("full", "diff", "host")

    @property
    def is_gone(self) -> bool:
        """Whether the message does not go out."""
        return self.form == "omitted"

    def to_row(self) -> list[Any]:
        """The stored form, by position."""
        row = list(self[:_WITHOUT_FOLDED])
        return [*row, list(self.folded)] if self.folded else row
