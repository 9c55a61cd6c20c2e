"""What the conversation costs on each host, and how much of what the model used was in view."""

from __future__ import annotations

import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from foredeck.cli.common import add_json_flag, positive
from foredeck.cli.eval_command import EvalNotReady, checkout
from foredeck.cli.output import print_json, table
from foredeck.cli.registry import Command
from foredeck.config import Config
from foredeck.model.calls import in_order
from foredeck.model.figures import short_count
from foredeck.model.names import identifiers
from foredeck.store.opening import open_store
from foredeck_bench.library.hosts import through_loop, through_pi
from foredeck_bench.library.story import rounds
from foredeck_bench.scripted import ScriptedModel
from foredeck_bench.scripted.pi_process import VERSIONS, PiInstall, checkout_pi
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


# The command


ROUNDS = 20


def _run(args: Namespace) -> int:
    install = checkout_pi(checkout(), VERSIONS[0])
    if install is None:
        raise EvalNotReady(f"Pi {VERSIONS[0]} is not installed here: run scripts/setup.")
    with tempfile.TemporaryDirectory(prefix="foredeck-library-") as folder:
        sums = compare(args.rounds, Path(folder), install, checkout())
    if args.json:
        print_json({"rounds": args.rounds, "scripted": True, "hosts": to_json(sums)})
    else:
        plain = {"Pi": sums[0].cost, "loop": sums[2].cost}
        rows = [
            ("", "calls", "prompts", "read", "cost", "of plain", "names", "edited", "rebased at")
        ]
        for each in sums:
            share = each.cost / plain["loop" if "loop" in each.host else "Pi"]
            rows.append(
                (
                    each.host,
                    str(each.calls),
                    short_count(each.prompt),
                    short_count(each.read),
                    short_count(round(each.cost)),
                    f"{share:.1%}",
                    f"{each.names:.1%}",
                    f"{each.edited:.1%}",
                    ", ".join(map(str, each.rebases)),
                )
            )
        print(table(rows))
        print(f"\n{args.rounds} rounds, by a scripted model on loopback; tokens are estimates.")
    return 1 if any(each.refused for each in sums) else 0


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--rounds",
        metavar="N",
        type=positive,
        default=ROUNDS,
        help="rounds of the conversation, of six model calls each (default: %(default)s)",
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Have the same conversation, by a scripted model, through the real Pi and through a loop\n"
        "in Python that uses `from foredeck import ContextManager`, each with and without\n"
        "foredeck: prompts, tokens that the provider's cache held, cost in tokens of uncached\n"
        "input, and how much of what the model wrote (names; lines that it replaced) stood in the\n"
        "prompt. Both hosts have Pi's system prompt and tools, and run them. Exit code 1 where a\n"
        "provider would have refused a prompt."
    ),
    example="foredeck bench library --rounds 5 --json",
    configure=_configure,
    run=_run,
)
