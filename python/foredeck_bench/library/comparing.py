"""What the conversation costs on each host, and how much of what the model used was in view."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from foredeck.config import Config
from foredeck.model.calls import in_order
from foredeck.model.names import identifiers
from foredeck.store.opening import open_store
from foredeck_bench.library.hosts import through_loop, through_pi
from foredeck_bench.library.story import rounds
from foredeck_bench.scripted import ScriptedModel
from foredeck_bench.scripted.pi_process import PiInstall
from foredeck_bench.scripted.request import content_text
from foredeck_bench.scripted.server import RecordedRequest

READ_PRICE = 0.1
"""Of a token that the cache held, relative to one of uncached input."""


@dataclass(frozen=True, slots=True)
class HostSum:
    """One conversation on one host. Tokens; `cost` in tokens of uncached input.

    `names`: of the identifiers that the model wrote and had met before, the share that stood in
    the prompt that it answered. `edited`: the same of the lines that it replaced.
    """

    host: str
    calls: int
    prompt: int
    read: int
    cost: float
    names: float
    edited: float
    rebases: list[int]
    """At which calls."""
    refused: int


def compare(count: int, root: Path, install: PiInstall, checkout: Path) -> list[HostSum]:
    """The same conversation of `count` rounds on four hosts."""
    story = rounds(count)
    plain_pi = through_pi(install, root / "pi", story, ())
    first = plain_pi.requests[0].request
    runs = {
        "plain Pi": (plain_pi, None),
        "Pi with foredeck": (
            through_pi(install, root / "pi-foredeck", story, [checkout]),
            root / "pi-foredeck" / "foredeck",
        ),
        "a loop": (through_loop(root / "loop", story, first, managed=False), None),
        "a loop with foredeck": (
            through_loop(root / "loop-foredeck", story, first, managed=True),
            root / "loop-foredeck" / "foredeck",
        ),
    }
    known = list(_known(plain_pi))
    return [_sum(name, model, known, home) for name, (model, home) in runs.items()]


def to_json(sums: Sequence[HostSum]) -> dict[str, Any]:
    """By host."""
    return {each.host: {k: v for k, v in asdict(each).items() if k != "host"} for each in sums}


def _known(plain: ScriptedModel) -> Iterator[str]:
    """All that the model had met before each of its replies."""
    return (recorded.request.text for recorded in _answered(plain))


def _answered(model: ScriptedModel) -> list[RecordedRequest]:
    return [each for each in model.requests if each.status == 200 and not each.side]


def _sum(host: str, model: ScriptedModel, known: Sequence[str], home: Path | None) -> HostSum:
    answered = _answered(model)
    usages = [each.usage for each in answered if each.usage is not None]
    read = sum(usage.read for usage in usages)
    rest = sum(usage.written + usage.uncached for usage in usages)
    names, lines = _Shown(), _Shown()
    for recorded, before in zip(answered, known, strict=True):
        seen = recorded.request.text
        said, replaced = _used(recorded)
        met = identifiers(before)
        names.add(identifiers(said) & met, identifiers(seen))
        lines.add((line for line in replaced if line in before), seen)
    return HostSum(
        host,
        len(answered),
        read + rest,
        read,
        round(rest + READ_PRICE * read),
        names.share,
        lines.share,
        [] if home is None else _rebases(home),
        len(model.violations),
    )


def _used(recorded: RecordedRequest) -> tuple[str, list[str]]:
    """What the model wrote, and the texts that it had replaced."""
    inputs = [block["input"] for block in recorded.reply if block.get("type") == "tool_use"]
    replaced = [str(edit["oldText"]) for each in inputs for edit in each.get("edits") or ()]
    return content_text(recorded.reply), replaced


class _Shown:
    """How much of what was used stood in the prompt."""

    def __init__(self) -> None:
        self._used = self._seen = 0

    def add(self, used: Any, seen: Any) -> None:
        """What one reply used, and what it is looked for in."""
        for each in used:
            self._used += 1
            self._seen += each in seen

    @property
    def share(self) -> float:
        """Of all of it."""
        return round(self._seen / self._used, 4) if self._used else 1.0


def _rebases(home: Path) -> list[int]:
    with closing(open_store(Config(home=home), lazy=True)) as store:
        records = in_order(head.fields for head in store.query("call"))
        return [record.ordinal for record in records if record.decision.is_rebase]
