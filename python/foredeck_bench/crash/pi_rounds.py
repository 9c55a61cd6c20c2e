"""Rounds through the real Pi, in which engine, Pi or both are killed.

Compared with an undisturbed session: a killed engine changes nothing for the provider; a killed Pi
goes on with the same messages.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from foredeck_bench.crash import stores
from foredeck_bench.crash.engine import (
    AFTER_SEND,
    INSIDE,
    POINTS,
    RANDOM,
    Fuse,
    KillPoint,
    kill_node,
)
from foredeck_bench.crash.stores import Tally, check_records, check_results
from foredeck_bench.scripted.pi_process import (
    MARK,
    PATIENT,
    PiInstall,
    PiWorkspace,
    wait_for_end,
    write_agent_dir,
)
from foredeck_bench.scripted.pi_rpc import RpcError, RpcPi
from foredeck_bench.twin.prompts import normalized
from foredeck_bench.twin.script import ModelRequest, StepResult, Text, call
from foredeck_bench.twin.server import ScriptedModel
from foredeck_lab.processes import kill, marked

WORK = "Work on the report."
GO_ON = "Go on after the interruption."
TEXT = "".join(f"line {n}: the quick brown fox jumps over the lazy dog\n" for n in range(60))

STEPS: list[StepResult] = [
    [Text("I look."), call("read", path="a.txt")],
    call("bash", command="seq 300"),
    call("edit", path="a.txt", edits=[{"oldText": "line 7:", "newText": "line seven:"}]),
    call("read", path="a.txt"),
    call("pin", id="a.txt"),
    call("bash", command="seq 400"),
    call("write", path="b.txt", content=TEXT.upper()),
    call("deactivate", id="b.txt"),
    "worked",
]
"""One answer per number of tool results since the user's last word."""

CALLS = len(STEPS)


def prepare(repo: Path) -> None:
    (repo / "a.txt").write_text(TEXT)
    (repo / "b.txt").unlink(missing_ok=True)


def answer(request: ModelRequest) -> StepResult:
    """The scripted model's reply to a request."""
    turn: list[Any] = []
    for role, block in blocks(request):
        turn = [] if (role, block["type"]) == ("user", "text") else [*turn, block]
        if block.get("text", "").startswith(GO_ON):
            turn = [None] * CALLS
    results = sum(block is None or block["type"] == "tool_result" for block in turn)
    step: StepResult = STEPS[min(results, CALLS - 1)]
    return step


def blocks(request: ModelRequest) -> Iterator[tuple[str, Any]]:
    for message in normalized(request.messages):
        for block in message["content"]:
            yield message["role"], block


def comparable(request: ModelRequest) -> list[str]:
    """One text per block of a request; calls have their number in place of the provider's id."""
    names: dict[str, str] = {}
    messages = []
    for role, block in blocks(request):
        for key in ("id", "tool_use_id"):
            if key in block:
                block[key] = names.setdefault(block[key], f"call-{len(names)}")
        messages.append(json.dumps([role, block], sort_keys=True))
    return messages


ORPHANED_S = 30.0
"""How long an engine may take to notice that Pi is gone."""
FIRST_CALLS = 1
"""The first model calls are spared: Pi keeps no file before an answer."""


@dataclass
class PiRounds:
    """Runs rounds with one Pi after another in `workspace`."""

    install: PiInstall
    workspace: PiWorkspace
    checkout: Path
    store: str
    victim: str
    tally: Tally
    random: random.Random
    _stack: ExitStack = field(default_factory=ExitStack)
    _pi: RpcPi | None = None
    _aimed: Callable[[int], None] | None = None
    _begun: int = 0
    _calm: list[list[str]] = field(default_factory=list)
    """The prompts of the undisturbed session."""
    _whole: list[str] = field(default_factory=list)
    _calm_s: float = 1.0

    def run(self, rounds: int) -> None:
        """Run this many rounds."""
        with self._stack:
            self._model = self._stack.enter_context(ScriptedModel(self._answer))
            write_agent_dir(self.workspace.agent_dir, self._model.url)
            self._stack.callback(self._end)
            self._undisturbed()
            for _ in range(rounds):
                self._round()

    # ------------------------------------------------------------ sessions

    def _undisturbed(self) -> None:
        began = self._begin()
        start = time.monotonic()
        assert self._pi is not None
        self._pi.prompt(WORK)
        self._calm_s = time.monotonic() - start
        self._pi.prompt(GO_ON)
        *self._calm, last = [comparable(r) for r in self._received(began)]
        self._whole = last[:-1]
        if len(self._calm) != CALLS or self._model.violations:
            raise RpcError(f"the undisturbed session went wrong: {self._model.violations}")

    def _begin(self) -> int:
        prepare(self.workspace.repo)
        if self._pi is None:
            self._pi = self._start()
        else:
            self._pi.send("new_session")
        self._begun = len(self._model.requests)
        return self._begun

    def _start(self, *arguments: str) -> RpcPi:
        program = [sys.executable, "-m", "foredeck_bench.crash.engine", str(self._fuse_file)]
        environment = {
            "FOREDECK_ENGINE": json.dumps(program),
            **PATIENT,
            **stores.settings(self.store),
        }
        pi = RpcPi(
            self.install,
            self.workspace,
            extensions=[self.checkout],
            arguments=arguments,
            environment=environment,
            timeout_s=120.0,
        )
        pi.state()
        return pi

    def _end(self) -> None:
        if self._pi is not None:
            self._pi.shutdown()
        self._count_orphans()
        # Nothing may write into the folder any more; a node that an engine started is among them.
        self.workspace.end_leftovers()

    def _count_orphans(self) -> None:
        started = marked(MARK, self.workspace.mark)
        ours = [p for p in started if "crash.engine" in p.command or "--mode rpc" in p.command]
        orphans = wait_for_end([p.pid for p in ours], ORPHANED_S)
        for process in ours:
            if process.pid in orphans:
                self.tally.fault("orphans", process.command[:200])

    # ------------------------------------------------------------ rounds

    def _round(self) -> None:
        point = self.random.choice((*POINTS, RANDOM))
        call = self.random.randrange(FIRST_CALLS, CALLS)
        began = self._begin()
        assert self._pi is not None
        session = self._pi.state()["sessionId"]
        violations = len(self._model.violations)
        with self._aim(point, call):
            start = len(self._pi.events)
            with suppress(RpcError):
                self._pi.send("prompt", message=WORK)
                self._pi.wait_idle(start)
        if self.victim in ("engine", "node"):
            self._compare_all(began)
        else:
            self._resume()
        self._check(session, began)
        if len(self._model.violations) > violations:
            self.tally.fault("refused_prompts", str(self._model.violations[-1]))
        self.tally.killed_at(f"{self.victim} {point}")

    @contextmanager
    def _aim(self, point: str, call: int) -> Iterator[None]:
        """Arranges for a kill at this point of the `call`-th model call."""
        fuse = Fuse(self._fuse_file)
        if point in INSIDE:
            node = str(self.workspace.foredeck_home) if self.victim == "node" else None
            engine, host = self.victim in ("engine", "both"), self.victim in ("pi", "both")
            fuse.lay(KillPoint(point, call, engine=engine, host=host, node=node))
        self._aimed = (
            (lambda n: self._strike() if n == call else None) if (point == AFTER_SEND) else None
        )
        timer = threading.Timer(self.random.uniform(0, self._calm_s), self._strike)
        if point == RANDOM:
            self._aimed = lambda n: timer.start() if n == FIRST_CALLS else None
        yield
        timer.cancel()
        self._aimed = None
        if fuse.is_left():
            self.tally.fault("unreached", point)

    def _strike(self) -> None:
        assert self._pi is not None
        if self.victim == "node":
            kill_node(self.workspace.foredeck_home)
            return
        pids = [p.pid for p in self._pi.children() if "crash.engine" in p.command]
        pids = {"engine": pids, "pi": [self._pi.pid], "both": [self._pi.pid, *pids]}[self.victim]
        for pid in pids:
            kill(pid)

    def _answer(self, request: ModelRequest) -> StepResult:
        if self._aimed is not None:
            self._aimed(request.index - self._begun)
        return answer(request)

    def _received(self, since: int) -> list[ModelRequest]:
        return [r.request for r in self._model.requests[since:]]

    @property
    def _fuse_file(self) -> Path:
        return self.workspace.root / "fuse.json"

    # ------------------------------------------------------------ what came of it

    def _compare_all(self, began: int) -> None:
        requests = [comparable(request) for request in self._received(began)]
        self.tally.compared["prompts"] += len(requests)
        for number, calm in enumerate(self._calm):
            ours = requests[number] if number < len(requests) else []
            if ours != calm:
                pairs = zip_longest(ours, calm, fillvalue="nothing")
                one, other = next((a, b) for a, b in pairs if a != b)
                text = f"call {number + 1}: {one[:200]} instead of {other[:200]}"
                self.tally.fault("differing", text)
                return

    def _resume(self) -> None:
        assert self._pi is not None
        self._strike()  # a random moment may have come after the last answer
        killed, self._pi = self._pi, None
        wait_for_end([killed.pid], 30.0)
        with suppress(RpcError):
            killed.shutdown()
        self._count_orphans()
        count_before = len(self._model.requests)
        start = time.monotonic()
        self._pi = self._start("--continue")
        self._pi.prompt(GO_ON)
        self.tally.recovery_s.append(self._model.requests[count_before].time_s - start)
        self.tally.compared["prompts"] += 1
        results_before = _written_results(self.workspace)
        self._compare_next(comparable(self._received(count_before)[0]), results_before)

    def _compare_next(self, prompt: list[str], held: set[str]) -> None:
        *past, word = prompt
        calm = self._whole
        shared = next((n for n, (a, b) in enumerate(zip(past, calm, strict=False)) if a != b), None)
        shared = min(len(past), len(calm)) if shared is None else shared
        for text in past[shared:]:
            block = json.loads(text)[1]
            if block["type"] != "tool_result" or block["tool_use_id"] in held:
                self.tally.fault("differing", f"after a kill: {text[:300]}")
        role, block = json.loads(word)
        if role != "user" or block.get("text") != GO_ON:
            self.tally.fault("differing", f"the user's word is not the last: {word[:300]}")
        result_ids = {json.loads(text)[1].get("tool_use_id") for text in past[:shared]}
        for id in held - result_ids:
            self.tally.fault("lost_results", f"{id} is in Pi's file and not in the next prompt")

    def _check(self, session: str, began: int) -> None:
        with stores.opened(self.workspace.foredeck_home, self.store) as store:
            check_records(store, session, self.tally)
            received = len(self._received(began))
            self.tally.compared["acknowledged"] += received
            records = store.query("call", {"session": session})
            if len(records) < received:
                self.tally.fault("missing", f"{received - len(records)} calls of {session}")
            check_results(store, session, _results(self.workspace, session), self.tally)


def _messages(workspace: PiWorkspace, role: str) -> list[dict[str, Any]]:
    messages = [entry.get("message") or {} for entry in workspace.session_entries()]
    return [message for message in messages if message.get("role") == role]


def _written_results(workspace: PiWorkspace) -> set[str]:
    """Results in Pi's file, named like `comparable`'s calls."""
    calls = [
        block["id"]
        for message in _messages(workspace, "assistant")
        for block in message["content"]
        if block["type"] == "toolCall"
    ]
    call_ids = {message["toolCallId"] for message in _messages(workspace, "toolResult")}
    return {f"call-{number}" for number, id in enumerate(calls) if id in call_ids}


def _results(workspace: PiWorkspace, session: str) -> dict[str, str]:
    if workspace.session_entries()[0]["id"] != session:
        return {}
    return {
        message["toolCallId"]: "\n".join(b["text"] for b in message["content"])
        for message in _messages(workspace, "toolResult")
    }
