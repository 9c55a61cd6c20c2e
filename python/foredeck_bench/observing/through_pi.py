"""Rounds through the real Pi: engine, Pi or node are killed while a session is observed.

When a turn is observed depends on who was killed when, so prompts are not compared byte for byte
here: in the last one every answer of the agent must stand once, in full or as what was noted of it.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foredeck.model.observations import observing_id
from foredeck.observations.lease import is_gone
from foredeck.observations.reading import Observation, stored_notes
from foredeck_bench.crash import homes
from foredeck_bench.crash.fuse import (
    AFTER_NOTED,
    BEFORE_NOTED,
    LEASE_TAKEN,
    SIGKILL,
    Fuse,
    KillPoint,
    kill_node,
)
from foredeck_bench.crash.run import CHECKOUT, CannotRun
from foredeck_bench.observing.crash import ASKED, ObservingTally
from foredeck_bench.scripted import ModelRequest, ScriptedModel, call, write_agent_dir
from foredeck_bench.scripted.pi_process import PATIENT, VERSIONS, PiWorkspace, checkout_pi
from foredeck_bench.scripted.pi_rpc import RpcError, RpcPi
from foredeck_bench.scripted.processes import wait_for_end
from foredeck_bench.scripted.steps import StepResult

TURNS = 6
POINTS = (LEASE_TAKEN, ASKED, BEFORE_NOTED, AFTER_NOTED)
_QUIET_S = 60.0
_CATCH_UP_S = 3.0
OBSERVED = {
    "FOREDECK_OBSERVATIONS": "on",
    "FOREDECK_OBSERVING__THRESHOLD": "2000",
    "FOREDECK_OBSERVING__BUFFER_TOKENS": "500",
    "FOREDECK_ASKING__SHARE": "1",
    "FOREDECK_ASKING__PER_HOUR": "1000",
    "FOREDECK_ASKING__SINGLE_SLOT": "true",
    "FOREDECK_MEMORY__EXTRACT": "false",
    "FOREDECK_REBASE__CACHE_TTL_S": "0",
}
"""Settings with which a short session is observed. The scripted model is on loopback, and to
foredeck no cache holds anything at a rebase."""
_LONG = "a word or two more " * 130
_QUESTION = re.compile(r"Question (\d+)")
_ANSWER = re.compile(r"Answered (\d+)\.")
_ANY = re.compile(r"(Question|Answered|seq) (\d+)")
_REPORT = re.compile(r"Note what the messages hold from .*")
_NOTE = re.compile(r"Agent has answered question (\d+)")

Advance = Callable[[str], None]


def through_pi(store: str, rounds: int, seed: int, advance: Advance) -> dict[str, Any]:
    """So many sessions of the real Pi on a private store. Raises `CannotRun` without Pi."""
    install = checkout_pi(CHECKOUT, VERSIONS[0])
    if install is None:
        raise CannotRun(f"Pi is not installed in {CHECKOUT}: run scripts/setup there")
    tally = ObservingTally()
    with tempfile.TemporaryDirectory(prefix="foredeck-observed-", ignore_cleanup_errors=True) as n:
        workspace = PiWorkspace(Path(n))
        with homes.prepared(workspace.foredeck_home, store), ExitStack() as stack:
            made = _PiRounds(install, workspace, store, tally, random.Random(seed), stack)
            made.run(rounds, advance)
    return tally.to_json()


@dataclass
class _PiRounds:
    install: Any
    workspace: PiWorkspace
    store: str
    tally: ObservingTally
    random: random.Random
    stack: ExitStack
    strike: Callable[[], None] | None = None
    """What to do while the next question of an observer waits."""
    _pi: RpcPi | None = None

    def run(self, rounds: int, advance: Advance) -> None:
        model = ScriptedModel(self._answer, side=self._observed)
        self._model = self.stack.enter_context(model)
        write_agent_dir(self.workspace.agent_dir, self._model.url)
        self.stack.callback(self._end)
        self._check("nobody", self._play(None))
        victims = ("engine", "pi", "node") if self.store == "xtdb" else ("engine", "pi")
        matrix = [(point, victim) for point in POINTS for victim in victims]
        for number in range(rounds):
            point, victim = matrix[number % len(matrix)]
            began = time.monotonic()
            prompt = self._play((self.random.randrange(1, TURNS - 1), point, victim))
            self.tally.recovery_s.append(time.monotonic() - began)
            self._check(f"{victim}, {point}", prompt)
            self.tally.rounds += 1
            self.tally.killed[f"{victim} {point}"] += 1
            advance(f"killed {victim}, {point}, through Pi")
        if self._model.violations:
            self.tally.fault("differing", f"a prompt was refused: {self._model.violations[0]}")

    # ------------------------------------------------------------ one session

    def _play(self, at: tuple[int, str, str] | None) -> str:
        """A session of `TURNS` turns, and one word more: the text of the prompt with that."""
        if self._pi is None:
            self._pi = self._start()
        else:
            self._pi.send("new_session")
        for turn in range(TURNS):
            struck = at is not None and at[0] == turn
            if at is not None and struck:
                self._aim(*at[1:])
            with suppress(RpcError):
                self._pi.prompt(f"Question {turn}")
            if at is not None and struck:
                self._struck(at[1], at[2])
            self._settle(turn - 1)
        before = len(self._model.requests)
        self._pi.prompt(f"Question {TURNS}")
        agents = [r for r in self._model.requests[before:] if not _is_observers(r.request)]
        return agents[0].request.text

    def _struck(self, point: str, victim: str) -> None:
        """Wait for the kill, and start Pi again where it was that one."""
        self._wait(lambda: self.strike is None)
        if point != ASKED and Fuse(self._fuse_file).is_left():
            self.tally.fault("unreached", f"{victim}, {point}")
            return
        if victim != "pi":
            return
        killed = self._pi
        assert killed is not None
        left = wait_for_end([killed.pid], 30.0)
        if left:
            self.tally.fault("unreached", f"{victim}, {point}")
        with suppress(RpcError):
            killed.shutdown()
        self._pi = self._start("--continue")

    def _settle(self, turn: int) -> None:
        """Let the background catch up: a scripted model leaves it no time of its own."""
        until = time.monotonic() + _CATCH_UP_S
        while turn >= 0 and time.monotonic() < until and not self._is_noted(turn):
            time.sleep(0.1)
        self._wait(self._is_quiet)

    def _is_noted(self, turn: int) -> bool:
        return any(str(turn) in _NOTE.findall(one.text) for one in self._noted())

    def _is_quiet(self) -> bool:
        """Whether nobody observes: what a killed process was at counts as over."""
        assert self._pi is not None
        session = str(self._pi.state()["sessionId"])
        with homes.opened(self.workspace.foredeck_home, self.store) as store:
            head = store.head(observing_id(session))
        work = None if head is None else head.fields.get("work")
        return work is None or is_gone(str(head.fields["owner"]) if head else "")

    def _aim(self, point: str, victim: str) -> None:
        assert self._pi is not None
        pi = self._pi
        if point == ASKED:
            self.strike = lambda: self._kill(pi, victim)
            return
        node = str(self.workspace.foredeck_home) if victim == "node" else None
        charge = KillPoint(point, engine=victim == "engine", host=victim == "pi", node=node)
        Fuse(self._fuse_file).lay(charge)

    def _kill(self, pi: RpcPi, victim: str) -> None:
        if victim == "node":
            kill_node(self.workspace.foredeck_home)
            return
        pids = [pi.pid]
        if victim == "engine":
            pids = [p.pid for p in pi.children() if "crash.engine" in p.command]
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, SIGKILL)

    def _wait(self, reached: Callable[[], bool]) -> None:
        until = time.monotonic() + _QUIET_S
        while not reached():
            if time.monotonic() > until:
                self.tally.fault("unreached", "nothing more happens")
                return
            time.sleep(0.05)

    def _start(self, *arguments: str) -> RpcPi:
        program = [sys.executable, "-m", "foredeck_bench.crash.engine", str(self._fuse_file)]
        environment = {
            **OBSERVED,
            **PATIENT,
            **homes.settings(self.store),
            "FOREDECK_ENGINE": json.dumps(program),
        }
        pi = RpcPi(
            *(self.install, self.workspace),
            extensions=[CHECKOUT],
            arguments=arguments,
            environment=environment,
            timeout_s=120.0,
        )
        pi.state()
        return pi

    def _end(self) -> None:
        if self._pi is not None:
            with suppress(RpcError):
                self._pi.shutdown()
        self.workspace.end_leftovers()

    @property
    def _fuse_file(self) -> Path:
        return self.workspace.root / "fuse.json"

    # ------------------------------------------------------------ the models

    def _answer(self, request: ModelRequest) -> StepResult:
        number = _QUESTION.findall(request.text)[-1]
        if _QUESTION.search(_last_text(request)):
            return call("bash", command=f"seq {number}")
        return f"Answered {number}. {_LONG}"

    def _observed(self, request: ModelRequest) -> StepResult | None:
        if not _is_observers(request):
            return None
        strike, self.strike = self.strike, None
        if strike is not None:
            strike()
        # The last prompt shows all of the chat: its question says what it is about.
        text = report[0] if (report := _REPORT.search(request.text)) else request.text
        asked = dict.fromkeys(_ANSWER.findall(text))
        if report is not None:
            (_, first), *_, (last_kind, last) = [*_ANY.findall(text)] * 2
            until = int(last) + (last_kind == "Answered")
            asked = dict.fromkeys(map(str, range(int(first), until)))
        notes = "\n".join(f"- 09:20 medium answer: Agent has answered question {n}" for n in asked)
        return f"<observations>\n2026-05-03\n{notes}\n</observations>"

    # ------------------------------------------------------------ what came of it

    def _noted(self) -> Sequence[Observation]:
        assert self._pi is not None
        session = str(self._pi.state()["sessionId"])
        with homes.opened(self.workspace.foredeck_home, self.store) as store:
            return stored_notes(store, [session]).observations

    def _check(self, what: str, prompt: str) -> None:
        observations = self._noted()
        covered = Counter(address for one in observations for address in one.document.covers)
        if not observations or max(covered.values()) > 1:
            self.tally.fault("doubled", f"{what}: {len(observations)} observations")
        shown = Counter(map(int, _ANSWER.findall(prompt) + _NOTE.findall(prompt)))
        if lost := [turn for turn in range(TURNS) if not shown[turn]]:
            self.tally.fault("lost", f"{what}: {lost}")
        if twice := [turn for turn in range(TURNS) if shown[turn] > 1]:
            self.tally.fault("doubled", f"{what}: {twice}")


def _is_observers(request: ModelRequest) -> bool:
    return "notes of a coding session" in json.dumps(request.body)


def _last_text(request: ModelRequest) -> str:
    """What the user says in the newest message; empty for a tool's result."""
    content = request.messages[-1]["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return " ".join(str(block["text"]) for block in blocks if block["type"] == "text")
