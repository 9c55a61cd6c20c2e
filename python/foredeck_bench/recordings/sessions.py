"""What is asked and answered in each recorded session."""

from __future__ import annotations

import base64
import json
import shlex
import shutil
import struct
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from foredeck_bench.demo.run import copy_sample
from foredeck_bench.scripted import ModelRequest, ScriptedModel, call, write_agent_dir
from foredeck_bench.scripted.pi_process import PiInstall, PiWorkspace
from foredeck_bench.scripted.pi_rpc import RpcPi
from foredeck_bench.twin.steps import Reply, Script, StepResult, Text, Thinking, overflow

TOOLS = Path(__file__).with_name("tools.js")
TICKETS = Path(__file__).with_name("tickets.py")
TESTS = "python3 -m unittest -q 2>&1 | tail -n 40"

Json = dict[str, Any]


class Recorder:
    """One Pi in a copy of the sample repository, with a scripted model."""

    def __init__(self, install: PiInstall, workspace: PiWorkspace) -> None:
        self.install, self.workspace = install, workspace
        self.model: ScriptedModel | None = None
        self._stack = ExitStack()
        copy_sample(workspace.repo)
        shutil.rmtree(workspace.repo / ".git", ignore_errors=True)

    def serve(self, script: Script, *, window: int = 200_000, **settings: Any) -> ScriptedModel:
        """Answer by this script from now on."""
        self.model = self._stack.enter_context(ScriptedModel(script))
        folder = self.workspace.agent_dir
        write_agent_dir(folder, self.model.url, window=window, settings=settings)
        return self.model

    def pi(self, *arguments: str) -> RpcPi:
        """A Pi that runs until the recording is made."""
        pi = RpcPi(
            self.install, self.workspace, extensions=[TOOLS], arguments=arguments, timeout_s=600
        )
        self._stack.callback(pi.shutdown)
        return pi

    def play(self, script: Script, **settings: Any) -> RpcPi:
        """A Pi with this script."""
        self.serve(script, **settings)
        return self.pi()

    def run(self, script: Script, *prompts: str, **settings: Any) -> None:
        """A session of these prompts."""
        pi = self.play(script, **settings)
        for prompt in prompts:
            pi.prompt(prompt)

    def files(self) -> list[str]:
        if self.model is not None and self.model.violations:
            raise ValueError(f"refused: {self.model.violations}")
        return [path.read_text(encoding="utf-8") for path in self.workspace.session_files()]

    def close(self) -> None:
        """End what runs."""
        self._stack.close()


def thought(text: str, *blocks: Any) -> list[Any]:
    """An answer that begins with reasoning."""
    return [Thinking(text), *blocks]


def effort(recorder: Recorder) -> None:
    pi = recorder.play(
        [
            thought("Look at the valuation first.", call("read", path="stocktake/valuation.py")),
            "valuation.py averages the cost of what is in stock.",
            thought("Now the tests.", call("bash", command=TESTS)),
            thought("Compare with the ledger.", call("read", path="stocktake/ledger.py")),
            "Two tests fail: negative stock is valued as if it were there.",
            "In short: value nothing below zero.",
        ]
    )
    pi.prompt("How is stock valued?")
    pi.send("set_thinking_level", level="xhigh")
    pi.prompt("Why do the tests fail?")
    pi.send("set_thinking_level", level="low")
    pi.prompt("And in short?")


def loaded(recorder: Recorder) -> None:
    """A tool that is loaded midway."""
    recorder.run(
        [
            call("read", path="README.md"),
            call("tool_search", query="stock of an item"),
            call("stock_level", sku="BLT-100"),
            call("read", path="data/items.csv"),
            "There are 12 of BLT-100, 3 of them reserved.",
        ],
        "How many BLT-100 are left?",
        defaultTools=["+tool_search"],
    )


def script(recorder: Recorder) -> None:
    reading = (
        "const files = ['ledger', 'valuation', 'pricing'];\n"
        "const texts = await Promise.all(files.map((name) => "
        "tools.read({ path: `stocktake/${name}.py` })));\n"
        "return texts.map((text, n) => `${files[n]}: ${text.split('\\n').length} lines`);"
    )
    writing = (
        "await tools.write({ path: 'docs/sizes.md', content: '# Sizes\\n\\nledger: small\\n' });\n"
        "await tools.edit({ path: 'docs/sizes.md', "
        "edits: [{ oldText: 'small', newText: 'not small' }] });\n"
        "return (await tools.bash({ command: 'cat docs/sizes.md' })).output;"
    )
    recorder.run(
        [
            call("codemode", code=reading),
            call("codemode", code=writing),
            call("read", path="docs/sizes.md"),
            "The sizes are in docs/sizes.md.",
        ],
        "Write down how large the modules are.",
        defaultTools=["+codemode"],
    )


def mcp(recorder: Recorder) -> None:
    server = {"command": sys.executable, "args": [str(TICKETS)], "exposure": "direct"}
    recorder.serve(
        [
            call("mcp__tickets__find", word="stock"),
            call("bash", command="grep -n negative -r stocktake tests"),
            "ST-41 is about negative stock.",
        ]
    )
    servers = json.dumps({"mcpServers": {"tickets": server}})
    (recorder.workspace.agent_dir / "mcp.json").write_text(servers)
    pi = recorder.pi()
    pi.prompt("Is there a ticket about negative stock?")


def images(recorder: Recorder) -> None:
    (recorder.workspace.repo / "shelf.png").write_bytes(picture(200, 40, 40))
    pi = recorder.play(
        [call("read", path="shelf.png"), "Both are plain squares.", "The first is blue."]
    )
    image = {"type": "image", "data": base64.b64encode(picture(40, 40, 200)).decode()}
    pi.prompt("Compare this with shelf.png.", images=[{**image, "mimeType": "image/png"}])
    pi.prompt("Which is blue?")


def compaction(recorder: Recorder) -> None:
    """The user compacts, and works on."""
    reads = [call("read", path=f"stocktake/{name}.py") for name in ("ledger", "report", "cli")]
    pi = recorder.play(
        [
            *reads,
            "Three modules read.",
            call("bash", command=TESTS),
            "Two tests fail.",
            call("read", path="tests/test_valuation.py"),
            "It is about negative stock.",
        ],
        compaction={"enabled": True, "keepRecentTokens": 400},
    )
    pi.prompt("Read the ledger, the report and the command line.")
    pi.prompt("Run the tests.")
    pi.compact("Keep what fails.")
    pi.prompt("What is it about?")


def fork(recorder: Recorder) -> None:
    pi = recorder.play(
        [
            call("read", path="stocktake/pricing.py"),
            "Prices are rounded to cents.",
            call("bash", command="grep -n round -r stocktake"),
            "Rounding is in one place.",
            call("read", path="tests/test_pricing.py"),
            "The tests agree.",
        ]
    )
    pi.prompt("How are prices rounded?")
    pi.prompt("Where else?")
    pi.fork(1)
    pi.prompt("What do the tests say?")


def tree(recorder: Recorder) -> None:
    edit = {"oldText": "# stocktake", "newText": "# Stock take"}
    pi = recorder.play(
        [
            call("read", path="README.md"),
            "Read.",
            call("edit", path="README.md", edits=[edit]),
            "Renamed.",
            call("bash", command="head -n 3 README.md"),
            "The name stands as it was changed on the branch that was left.",
        ]
    )
    pi.prompt("Read the readme.")
    at = pi.entries()[-1]["id"]
    pi.prompt("Call it Stock take.")
    pi.command(f"/goto {at}")
    pi.prompt("What is it called?")


def stopped(recorder: Recorder) -> None:
    model = recorder.serve(
        [
            call("bash", command="ls stocktake"),
            Reply((Text("I would read all of them."),), delay_s=5.0),
            call("read", path="stocktake/models.py"),
            "Only the models matter.",
        ]
    )
    pi = recorder.pi()
    event_count = len(pi.events)
    pi.send("prompt", message="Which modules matter?")
    while len(model.requests) < 2:
        pi.wait_event(lambda event: event.get("type") == "turn_end", event_count)
    pi.abort()
    pi.wait_idle(event_count)
    pi.prompt("Only the models, please.")


def subagent(recorder: Recorder) -> None:
    """A Pi that a Pi has started."""
    command = shlex.join([*recorder.install.command, "-p", "Count the tests."])

    def answer(request: ModelRequest) -> StepResult:
        count = len(request.results)
        if "Count the tests." in request.text and "Ask another" not in request.text:
            return (
                "There are tests of three modules." if count else call("bash", command="ls tests")
            )
        if count == 0:
            return call("bash", command=command)
        return "The other one says: tests of three modules."

    recorder.run(answer, "Ask another agent how many tests there are.")


def resumed(recorder: Recorder) -> None:
    pi = recorder.play(
        [
            call("read", path="data/movements.csv"),
            "Movements are dated.",
            call("bash", command="wc -l data/*.csv"),
            "Both files are short.",
        ]
    )
    pi.prompt("What is in the movements?")
    pi.shutdown()
    pi = recorder.pi("--continue")
    pi.prompt("How long are the files?")
    pi.shutdown()


def overflown(recorder: Recorder) -> None:
    """A prompt too long: Pi compacts, removes the attempt, and asks again."""
    recorder.run(
        [
            call("bash", command="cat stocktake/*.py"),
            call("bash", command="cat tests/*.py"),
            overflow(41_000, 40_000),
            call("read", path="stocktake/parsing.py"),
            "All of it read.",
        ],
        "Read everything.",
        window=40_000,
        compaction={"enabled": True, "reserveTokens": 4000, "keepRecentTokens": 1500},
    )


def long(recorder: Recorder) -> None:
    modules = ("ledger", "valuation", "pricing", "parsing", "report", "models", "cli")
    steps: list[StepResult] = []
    for number in range(60):
        name = modules[number % len(modules)]
        line = f"# Checked {number}.\n"
        steps += [
            call("read", path=f"stocktake/{name}.py", limit=30),
            thought(
                f"Look for uses of {name}.", call("bash", command=f"grep -rn {name} tests | head")
            ),
            call(
                "bash", command=f"echo {shlex.quote(line.strip())} >> notes.md; tail -n 5 notes.md"
            ),
            call("bash", command=f"wc -l stocktake/{name}.py data/items.csv"),
            f"{name} is checked, round {number // len(modules) + 1}.",
        ]
    recorder.run(steps, *(f"Check module {number + 1}." for number in range(60)))


RECORDINGS: Mapping[str, Callable[[Recorder], None]] = {
    "effort": effort,
    "loaded": loaded,
    "script": script,
    "mcp": mcp,
    "images": images,
    "compaction": compaction,
    "fork": fork,
    "tree": tree,
    "stopped": stopped,
    "subagent": subagent,
    "resumed": resumed,
    "overflown": overflown,
    "long": long,
}
"""By name; one may leave several files."""


def picture(*colour: int) -> bytes:
    """A PNG of one colour."""
    side = 8
    rows = (b"\0" + bytes(colour) * side) * side

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    parts: Sequence[tuple[bytes, bytes]] = (
        (b"IHDR", head),
        (b"IDAT", zlib.compress(rows, 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)
