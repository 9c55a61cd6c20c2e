"""What the conversation costs on each host, and how much of what the model used was in view."""

from __future__ import annotations

import json
import subprocess
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx

from foredeck import ContextManager, ModelInfo
from foredeck.cli.arguments import add_json_flag, positive
from foredeck.cli.eval_command import checkout
from foredeck.cli.output import print_json, table
from foredeck.cli.registry import Command
from foredeck.config import Config
from foredeck.embedded.chat_completions import ChatCompletions
from foredeck.embedded.format import ToolRequest
from foredeck.errors import CommandRefused
from foredeck.model.calls import in_order
from foredeck.model.figures import short_count
from foredeck.model.names import identifiers
from foredeck.store.kind import open_store
from foredeck_bench.demo.run import copy_sample
from foredeck_bench.library.story import Round, rounds
from foredeck_bench.scripted import ModelRequest, ScriptedModel, write_agent_dir
from foredeck_bench.scripted.agent_dir import MODEL, PROVIDER
from foredeck_bench.scripted.pi_process import (
    PATIENT,
    VERSIONS,
    PiInstall,
    PiWorkspace,
    checkout_pi,
    run_print,
)
from foredeck_bench.scripted.request import content_text
from foredeck_bench.scripted.server import RecordedRequest
from foredeck_bench.scripted.steps import StepResult

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
        raise CommandRefused(f"Pi {VERSIONS[0]} is not installed here: run scripts/setup.")
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


# The two hosts


Json = dict[str, Any]
WINDOW = 200_000
SESSION = "bench"
TIMEOUT_S = 1_800.0
_INFO = ModelInfo(f"{PROVIDER}/{MODEL}", WINDOW, 3.0, 0.3, 3.75, 300)
"""As `write_agent_dir` describes it to Pi."""


def replies_of(story: Sequence[Round]) -> list[StepResult]:
    """All that the model says, in order."""
    return [reply for each in story for reply in each.replies]


def through_pi(
    install: PiInstall, root: Path, story: Sequence[Round], extensions: Sequence[Path]
) -> ScriptedModel:
    """The conversation through the real Pi; what reached the model."""
    workspace = PiWorkspace(root)
    copy_sample(workspace.repo)
    # No cache has gone cold at the end, however slow this machine is.
    with ScriptedModel(replies_of(story), window=WINDOW, clock=lambda: 0.0) as model:
        write_agent_dir(workspace.agent_dir, model.url, api="openai-completions", window=WINDOW)
        prompts = [each.prompt for each in story]
        options: Json = {"environment": PATIENT, "timeout_s": TIMEOUT_S}
        ran = run_print(install, workspace, *prompts, extensions=extensions, **options)
    if ran.code:
        raise RuntimeError(f"pi ended with {ran.code}: {ran.stderr[-2000:]}")
    return model


def through_loop(
    root: Path, story: Sequence[Round], first: ModelRequest, *, managed: bool
) -> ScriptedModel:
    """The conversation through a loop, with what Pi's `first` request declares."""
    folder = root / "repo"
    copy_sample(folder)
    with ScriptedModel(replies_of(story), window=WINDOW, clock=lambda: 0.0) as model:
        loop = _Loop(model.url, folder, first)
        if managed:
            home = root / "foredeck"
            with ContextManager(SESSION, model=_INFO, cwd=folder, home=home) as context:
                loop.talk(story, context)
        else:
            loop.talk(story, None)
    return model


class _Loop:
    """An agent loop as anyone would write it."""

    def __init__(self, url: str, folder: Path, first: ModelRequest) -> None:
        self._url = url
        self._format = ChatCompletions()
        self._folder = folder
        self._tools: list[Json] = first.body["tools"]
        self._messages: list[Json] = list(filter(self._format.is_system, first.messages))

    def talk(self, story: Sequence[Round], context: ContextManager | None) -> None:
        """All rounds."""
        for each in story:
            self._messages.append({"role": "user", "content": each.prompt})
            while self._turn(context):
                pass

    def _turn(self, context: ContextManager | None) -> bool:
        """One model call and the tools that it asks for; whether there were any."""
        if context is None:
            tools, sent = self._tools, self._messages
        else:
            tools = [*self._tools, *context.tools]
            sent = context.prepare(self._messages, tools=tools)
        answer = self._ask({"model": MODEL, "messages": sent, "tools": tools})
        if context is not None:
            context.report(answer["usage"])
        self._messages.append(answer["choices"][0]["message"])
        uses = self._format.tool_uses(self._messages[-1])
        for use in uses:
            text = _use_tool(self._folder, use)
            made = self._format.result(use, text, failed=False)
            self._messages.append(context.observed(use, text) if context is not None else made)
        return bool(uses)

    def _ask(self, body: Json) -> Json:
        answer = httpx.post(f"{self._url}/v1/chat/completions", json=body, timeout=600)
        found: Json = json.loads(answer.raise_for_status().content)
        return found


def _use_tool(folder: Path, use: ToolRequest) -> str:
    """Pi's tools, as far as the story uses them."""
    if use.name == "bash":
        command = ["sh", "-c", str(use.arguments["command"])]
        pipes: Json = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return str(subprocess.run(command, cwd=folder, check=False, **pipes).stdout)
    file = folder / str(use.arguments["path"])
    if use.name == "edit":
        edits = use.arguments["edits"]
        for edit in edits:
            text = file.read_text(encoding="utf-8")
            file.write_text(text.replace(edit["oldText"], edit["newText"], 1), encoding="utf-8")
        return f"Successfully replaced {len(edits)} block(s) in {use.arguments['path']}."
    return file.read_text(encoding="utf-8")
