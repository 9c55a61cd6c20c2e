"""The values inside a call record, each with its stored form: what becomes of messages, how sets
have changed, what was decided, what it cost.

`from_record` reads what a store holds, `to_record` (or `to_row`) writes it: the names and positions
there are the stored form of 0.1.0, and stay. What a record leaves out has the default.
They are named tuples, since a session that is opened makes thousands of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparison

T = TypeVar("T", bound="SupportsRichComparison")
V = TypeVar("V")
Stored = Mapping[str, Any]


@cache
def _stored_fields(kind: Any) -> list[tuple[str, Any]]:
    """The fields of a kind of values, with their defaults."""
    return list(kind._field_defaults.items())


def _read(kind: Callable[..., V], stored: Stored) -> V:
    return kind(
        *[
            default if (value := stored.get(name)) is None else value
            for name, default in _stored_fields(kind)
        ]
    )


def _written(value: Any, *always: str) -> dict[str, Any]:
    """What a record keeps: these fields, and of the others those that do not have the default."""
    pairs = zip(_stored_fields(value.__class__), value, strict=True)
    return {
        name: list(each) if isinstance(each, tuple) else each
        for (name, default), each in pairs
        if name in always or each != default
    }


DecisionKind = Literal["append", "rebase", "host"]

CHARS_PER_TOKEN = 3.5
"""An estimate, until the provider's own counts tell (`gauge.py`); code has fewer than prose."""

UNSENT = frozenset({"fallback", "aborted", "refused"})
"""Outcomes of calls whose answer never went out, or was refused by the provider."""

REWRITTEN = "rewritten"
"""An outcome: another extension has changed the call's request, or the one before it."""


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
    "window": "the prompt would not have fitted the window",
    "off": "foredeck was switched off",
    "timeout": "the engine did not answer in time",
    "away": "the engine did not run",
}
"""Why a prompt was rewritten, or went out without foredeck, in words for its user."""


class Decision(NamedTuple):
    """What was decided at a call, and why.

    `append`: what was sent before stays as it was. `rebase`: it was rewritten from message
    `changed_from` on. `host`: the call went out without foredeck, as the host has it from message
    `edited` on.
    """

    kind: DecisionKind = "append"
    reason: str | None = None
    changed_from: int | None = None
    edited: int | None = None
    carrying_cost: int | None = None
    """What reading the candidates had cost, in tokens of uncached input."""
    rewrite_cost: int | None = None
    """What rewriting the rest costs more, in the same tokens."""
    saves: int | None = None
    """By how many tokens each later call is shorter."""
    compaction: str | None = None
    """Id of the compaction with which the prompt was brought into the window."""
    covers: Sequence[str] = ()
    """Ids of the observations and reflections that took the place of messages at this call."""
    copies: int | None = None
    """Tokens of the current copies of files at work that a rebase has put in."""
    replaced: int | None = None
    """Tokens of what they replace."""
    call_groups: int | None = None
    """How many groups of folded calls one text has replaced since this call."""
    turn_ended: bool | None = None
    """Whether a word of ours has ended the turn under way, so that its reasoning left, too."""

    @property
    def is_rebase(self) -> bool:
        """Whether bytes that were sent before have changed."""
        return self.kind == "rebase"

    @property
    def is_host(self) -> bool:
        """Whether the call went out without foredeck."""
        return self.kind == "host"

    @property
    def weighed(self) -> dict[str, int]:
        """The figures behind a rebase, in tokens: `carrying_cost`, `rewrite_cost` and `saves` of
        one that pays, `copies` and `replaced` of one with current copies; empty for others."""
        names = ("carrying_cost", "rewrite_cost", "saves", "copies", "replaced")
        weighed = {name: getattr(self, name) for name in names}
        return {name: value for name, value in weighed.items() if value is not None}

    @classmethod
    def from_record(cls, stored: Stored) -> Decision:
        """The inverse of `to_record`."""
        return _read(cls, stored)

    def to_record(self) -> dict[str, Any]:
        """As a record keeps it and the host gets it."""
        return _written(self._replace(covers=tuple(self.covers)), "kind")


class CallStats(NamedTuple):
    """How large the prompt was, and what the session held, once the call was decided."""

    messages: int = 0
    chars_host: int = 0
    """Characters that the host alone would have sent, system prompt and tools included."""
    chars_sent: int = 0
    """Characters that went out."""
    rate: float = 0.0
    """Characters per token, as gauged at the time; 0 where it was not recorded."""
    reports: int = 0
    """On how many counts of the provider `rate` rests; 0: it is an estimate."""
    images: int = 0
    image_tokens: int = 0
    """What these images count, in tokens; in characters each counts alike."""
    rebase_in: int | None = None
    """In how many calls at the earliest a rebase pays, where that was known."""
    objects: int = 0
    active: int = 0
    pinned: int = 0
    folded: int = 0
    """Objects of the chat whose content was folded."""

    @classmethod
    def from_record(cls, stored: Stored) -> CallStats:
        """The inverse of `to_record`."""
        images, image_tokens = stored.get("images") or (0, 0)
        return _read(cls, {**stored, "images": images, "image_tokens": image_tokens})

    def to_record(self) -> dict[str, Any]:
        """As a record keeps them and the host gets them."""
        sizes = "messages", "chars_host", "chars_sent", "rate", "reports"
        sets = "objects", "active", "pinned", "folded"
        rest = self._replace(images=0, image_tokens=0, rebase_in=self.rebase_in or None)
        images = {"images": [self.images, self.image_tokens]} if self.images else {}
        return _written(rest, *sizes, *sets) | images


PriceTier = Sequence[float]
"""Of prompts with more tokens than the first number: the prices of uncached input, of a read and of
a written token, relative to the uncached input of shorter ones."""


class CalledModel(NamedTuple):
    """The model that a call was made to; without a name where none is known."""

    name: str = ""
    """`provider/id`."""
    api: str = ""
    window: int | None = None
    """In tokens."""
    read: float = 0.1
    """Price of a token read from the cache, relative to one of uncached input."""
    write: float = 1.25
    """Price of a token written to it."""
    guessed: bool = False
    """Whether `read` and `write` are defaults, because the host names no prices."""
    ttl_s: float | None = None
    """For how many seconds the cache lives, where the host says so."""
    input_price: float = 0.0
    """Of a million tokens of uncached input, in the host's currency; 0 where it is not known."""
    tiers: Sequence[PriceTier] = ()
    """What longer prompts cost."""

    @classmethod
    def from_record(cls, stored: Stored) -> CalledModel:
        """The inverse of `to_record`."""
        return _read(cls, stored)

    def to_record(self) -> dict[str, Any]:
        """As a record keeps it: empty where no model is known."""
        return _written(self, "name", "api", "window", "read", "write") if self.name else {}


class ReportedUsage(NamedTuple):
    """What the provider has counted of an earlier call, in tokens."""

    call: int
    """Its ordinal."""
    read: int
    written: int
    fresh: int
    model: CalledModel | None = None
    """The model that has answered it; None where it is that of the call's record. Where the host
    picks a model for each request, it is known only by the answer."""

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> ReportedUsage:
        """The inverse of `to_row`."""
        model = CalledModel.from_record(row[_COUNTS]) if len(row) > _COUNTS else None
        return cls(*row[:_COUNTS])._replace(model=model)

    def to_row(self) -> list[Any]:
        """As a record keeps it."""
        counts = list(self[:_COUNTS])
        return counts if self.model is None else [*counts, self.model.to_record()]


_COUNTS = 4


class PromptTokens(NamedTuple):
    """Tokens of one prompt, by what the provider's cache does with them."""

    read: int
    written: int
    fresh: int
    """Of neither kind."""

    def cost(self, model: CalledModel) -> float:
        """What they cost, in tokens of uncached input of a short prompt."""
        total = self.read + self.written + self.fresh
        passed = [tier for tier in model.tiers if total > tier[0]]
        none = (0, 1.0, model.read, model.write)
        _, fresh, read, write = max(passed, key=lambda tier: tier[0], default=none)
        return self.read * read + self.written * write + self.fresh * fresh


class CachePrediction(NamedTuple):
    """What the provider's cache was expected to do with a call; all None without a prediction, as
    where the call went out without foredeck."""

    rule: str | None = None
    """By which rule the provider keeps prompts."""
    hit: int | None = None
    """Messages of the prefix that is found; 0: only what comes before them, -1: nothing."""
    read: int | None = None
    """Tokens read from the cache."""
    written: int | None = None
    """Tokens written to it."""
    fresh: int | None = None
    """Tokens of neither kind."""
    marked: int | None = None
    """How many messages come before one more cache marker, where one is set."""
    warmed_ms: int = 0
    """When the host had last sent the newest prompt again to keep it cached; 0: it had not."""
    reported: ReportedUsage | None = None
    """What the provider has counted of the call before."""
    baseline: PromptTokens | None = None
    """What the host alone would have sent."""
    around: str = ""
    """A hash of what went out before the chat."""

    @classmethod
    def from_record(cls, stored: Stored | None) -> CachePrediction:
        """The inverse of `to_record`; of None an empty prediction."""
        if not stored:
            return NO_PREDICTION
        reported, baseline = stored.get("reported"), stored.get("baseline")
        return _read(cls, stored)._replace(
            reported=ReportedUsage.from_row(reported) if reported else None,
            baseline=PromptTokens(*baseline) if baseline else None,
        )

    def to_record(self) -> dict[str, Any] | None:
        """As a record keeps it; None without a prediction."""
        counts = "hit", "read", "written", "fresh"
        reported = {} if self.reported is None else {"reported": self.reported.to_row()}
        rest = _written(self._replace(reported=None), "rule", *counts)
        return None if self.rule is None else rest | reported


NO_PREDICTION = CachePrediction()


class Ack(NamedTuple):
    """What has become of an earlier call, as the host has reported since."""

    call: int
    """Its ordinal."""
    outcome: str
    """`applied`, `aborted`, `fallback`, `refused`, or `rewritten`."""
    detail: str = ""
    """Of a call that was rewritten: what another extension has changed."""

    def to_row(self) -> list[Any]:
        """As a record keeps it."""
        return list(self) if self.detail else list(self[:2])


class BranchCost(NamedTuple):
    """What a branch has cost so far, in tokens of uncached input."""

    baseline: float = 0.0
    """With nothing folded."""
    actual: float = 0.0
    """As it went out."""
    left: int = 0
    """Characters of the chat that the host would have compacted away by now."""

    def after(self, baseline: float, actual: float) -> BranchCost:
        """With the prompts of one more call; rounded, so that a stored one is the same."""
        return BranchCost(
            round(self.baseline + baseline, 1), round(self.actual + actual, 1), self.left
        )

    @classmethod
    def from_record(cls, stored: Stored) -> BranchCost:
        """The inverse of `to_record`."""
        return _read(cls, stored)

    def to_record(self) -> dict[str, float]:
        """As a record keeps it."""
        return _written(self, "baseline", "actual")


class ModelSpending(NamedTuple):
    """What the calls of a session to one model have cost, in tokens of uncached input."""

    model: str
    price: float
    """Of a million of these tokens, in the host's currency; 0 where it is not known."""
    calls: int
    plain: float
    """What the host's own prompts would have cost at the same calls."""
    ours: float

    def less(self, before: ModelSpending | None) -> ModelSpending:
        """What was added since an earlier sum of the same model."""
        if before is None:
            return self
        calls, plain, ours = (now - then for now, then in zip(self[2:], before[2:], strict=True))
        return self._replace(calls=int(calls), plain=plain, ours=ours)


Form = Literal["host", "full", "same", "diff", "reference", "note", "omitted", "folded"]
"""`host`: all that the host has, with lines of ours where there are blocks. `full`: the content
with its handle. `same` and `diff`: said by reference to an earlier copy. `reference`: folded to a
line. `note`: a tool's short answer. `omitted`: left out. `folded`: a message without some of its
pieces."""


_WITHOUT_FOLDED = 7


class OpRow(NamedTuple):
    """What becomes of a message (`context.plan.ops`), as a record keeps it."""

    message: int
    """Its index."""
    form: Form
    packed: list[Any] | None
    """Its recipe, long texts moved to blobs; None: as the host has it."""
    subject: int | None = None
    """Handle of the object whose content it carries."""
    version: int | None = None
    """Which version of the object, by its ordinal in the session."""
    base: int | None = None
    """Index of the earlier message that it refers to."""
    text_hash: str | None = None
    folded: tuple[int, ...] = ()
    """The folded pieces of the message."""

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> OpRow:
        """The inverse of `to_row`."""
        if len(row) == _WITHOUT_FOLDED:
            return cls(*row)
        return cls(*row[:_WITHOUT_FOLDED], tuple(row[_WITHOUT_FOLDED]))  # type: ignore[call-arg]

    @property
    def shows(self) -> bool:
        """Whether the subject's content can be read in the message, with the base for a
        difference."""
        return self.form in ("full", "diff", "host")

    @property
    def is_gone(self) -> bool:
        """Whether the message does not go out."""
        return self.form == "omitted"

    def to_row(self) -> list[Any]:
        """As a record keeps it: by position, `folded` only where there are some."""
        row = list(self[:_WITHOUT_FOLDED])
        return [*row, list(self.folded)] if self.folded else row


class Delta(NamedTuple, Generic[T]):
    """What has come into a set since the call before, and what has gone."""

    added: Sequence[T] = ()
    removed: Sequence[T] = ()

    @classmethod
    def between(cls, before: AbstractSet[T], now: AbstractSet[T]) -> Delta[T]:
        """What has come and what has gone, each side sorted."""
        return cls(tuple(sorted(now - before)), tuple(sorted(before - now)))

    @classmethod
    def from_record(cls, stored: Mapping[str, Sequence[T]]) -> Delta[T]:
        """What is stored as `+` and `-`."""
        return cls(stored.get("+", ()), stored.get("-", ()))

    def to_record(self, name: str = "") -> dict[str, list[T]]:
        """The inverse of `from_record`, with a name before the signs. An empty side is left out."""
        sides: Iterable[tuple[str, Sequence[T]]] = (("+", self.added), ("-", self.removed))
        return {name + sign: list(members) for sign, members in sides if members}


_NONE: Delta[Any] = Delta()


class SetChanges(NamedTuple):
    """How the sets of a branch have changed at a call: objects by handle, messages by index."""

    pool: Delta[int] = _NONE
    active: Delta[int] = _NONE
    pinned: Delta[int] = _NONE
    released: Delta[int] = _NONE
    """Messages whose content is no longer kept, whether it has left the prompt or not."""

    @classmethod
    def from_record(cls, stored: Mapping[str, Sequence[int]]) -> SetChanges:
        """The inverse of `to_record`."""
        if not stored:
            return NO_CHANGES
        return cls(*[_delta(stored, plus, minus) for plus, minus in _SIGNED])

    def to_record(self) -> dict[str, list[int]]:
        """As a record keeps them: `pool+`, `pool-`, `active+` and so on."""
        deltas = (self.pool, self.active, self.pinned, self.released)
        pairs = zip(_SETS, deltas, strict=True)
        return {key: value for name, d in pairs for key, value in d.to_record(name).items()}


_SETS = ("pool", "active", "pinned", "released")
_SIGNED = [(name + "+", name + "-") for name in _SETS]
NO_CHANGES = SetChanges()


def _delta(stored: Mapping[str, Sequence[int]], plus: str, minus: str) -> Delta[int]:
    # Most sets do not change at a call: thousands of records are read at once.
    if plus in stored or minus in stored:
        return Delta(stored.get(plus, ()), stored.get(minus, ()))
    return _NONE
