"""Scripted work with an agent: calls, searches, subagents, compactions, restarts."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from foredeck_bench.clients.agents import Client
from foredeck_bench.scripted import ModelRequest
from foredeck_bench.twin.steps import SealedSummary, Step, StepResult

SUBAGENT = "Look through the parts and tell what they do"
_SUMMARY = re.compile(
    r"detailed summary of the|CONTEXT CHECKPOINT COMPACTION|summari[sz]ation|anchored summary", re.I
)
_SEARCH = ("web_search",)
LINES = 250
"""Of a large result."""
PAUSE_S = 8
_COMPACTS_ABOVE = 16_000


@dataclass(frozen=True)
class UserTurn:
    """What the user says, and what the model does then. `direct`: without foredeck; `compacts`:
    above so many tokens."""

    text: str
    steps: Sequence[Step]
    direct: bool = False
    compacts: int | None = None


@dataclass
class Story:
    """The model of one session."""

    subagent: Sequence[Step] = ()
    pause: Step | None = None
    """The proxy restarts during this call."""
    restarts: threading.Event = field(default_factory=threading.Event)
    _steps: list[Step] = field(default_factory=list)
    _beside: list[Step] = field(default_factory=list)

    def begin(self, turn: UserTurn) -> None:
        """The user says something."""
        self._steps = list(turn.steps)
        self._beside = list(self.subagent)

    def __call__(self, request: ModelRequest) -> StepResult:
        if not request.tools:
            return (
                '{"title": "A title"}' if "title" in request.system.lower() else _summary(request)
            )
        if request.tools == _SEARCH:
            return "Snakes sleep in a coil."
        if is_summary(request):
            return _summary(request)
        steps = self._beside if SUBAGENT in _first(request) else self._steps
        step = steps.pop(0) if steps else "All is done."
        if step is self.pause:
            self.restarts.set()
        return step(request) if callable(step) else step


def is_summary(request: ModelRequest) -> bool:
    """Whether an agent asks for a summary, to compact."""
    if _is_triggered(request):
        return True
    newest = str(request.messages[-2:])[-4000:]
    return bool(_SUMMARY.search(request.system[:300]) or _SUMMARY.search(newest))


def _is_triggered(request: ModelRequest) -> bool:
    items = request.raw.get("input") or [{}]
    return isinstance(items, list) and items[-1].get("type") == "compaction_trigger"


def _summary(request: ModelRequest) -> StepResult:
    text = f"<summary>{len(request.messages)} messages about the parts.</summary>"
    return SealedSummary(text) if _is_triggered(request) else text


def _first(request: ModelRequest) -> str:
    user_messages = (m for m in request.messages if m.get("role") == "user")
    return str(next(user_messages, ""))


Played = tuple[Sequence[UserTurn], Story]
Scene = Callable[[Client, Path], Played]


def _work(client: Client, folder: Path, calls: int, lines: int, first: int = 0) -> list[Step]:
    """Reads, commands and edits, with results of so many lines."""
    steps: list[Step] = []
    for number in range(first, first + calls):
        file = folder / f"part_{number}.py"
        steps_of = (f"def step_{number}_{n}(value):\n    return {n}\n" for n in range(lines // 2))
        file.write_text(f"LIMIT_{number} = {number}\n{''.join(steps_of)}")
        match number % 4:
            case 0:
                steps.append(client.read(file))
            case 1:
                steps.append(client.run(f"head -n {lines} {file.name}"))
            case 2:
                steps.append(client.run(f"grep -c NOTHING {file.name}; exit 3"))
            case _:
                # An agent edits only what it has read.
                limit = f"LIMIT_{number - 3} = "
                edited = folder / f"part_{number - 3}.py"
                steps.append(client.edit(edited, f"{limit}{number - 3}", f"{limit}-1"))
    return steps


def work(calls: int, lines: int, *, first: bool = False, then: bool = False) -> Scene:
    """A session of two turns, perhaps one of them without foredeck."""

    def scene(client: Client, folder: Path) -> Played:
        steps, half = _work(client, folder, calls, lines), calls // 2
        one = UserTurn("Look at the parts", [*steps[:half], "The first half is done."], first)
        other = UserTurn("Go on with the others", [*steps[half:], "All is done."], then)
        return (one, other), Story()

    return scene


def in_one_turn(client: Client, folder: Path) -> Played:
    """A session in which the user speaks once."""
    return (UserTurn("Look at the parts", [*_work(client, folder, 120, LINES), "Done."]),), Story()


def searching(client: Client, folder: Path) -> Played:
    """Searches between calls, for which Claude Code asks another model."""
    steps = _work(client, folder, 8, LINES)
    if client.search is not None:
        steps[3:3] = steps[6:6] = [client.search("how snakes sleep")]
    return (UserTurn("Do it", [*steps, "Done."]),), Story()


def compacting(client: Client, folder: Path) -> Played:
    """The agent compacts after work, then works on."""
    before, after = _work(client, folder, 12, LINES), _work(client, folder, 8, LINES, 12)
    first = UserTurn("Do it", [*before, "Done."])
    if client.compact:
        return (first, UserTurn(client.compact, ()), UserTurn("Go on", [*after, "Bye."])), Story()
    return (first, UserTurn("Go on", [*after, "Bye."], compacts=_COMPACTS_ABOVE)), Story()


def delegating(client: Client, folder: Path) -> Played:
    """A subagent works between two calls."""
    steps, beside = _work(client, folder, 8, LINES), _work(client, folder, 8, LINES, 8)
    steps[4:4] = client.subagent(SUBAGENT)
    return (UserTurn("Do it", [*steps, "Done."]),), Story([*beside, "They return numbers."])


def restarting(client: Client, folder: Path) -> Played:
    """The proxy restarts while the agent's command runs."""
    steps, pause = _work(client, folder, 16, LINES), client.run(f"sleep {PAUSE_S}")
    steps.insert(8, pause)
    return (UserTurn("Do it", [*steps, "Done."]),), Story(pause=pause)


SCENES: Mapping[str, Scene] = {
    "small-40": work(40, 10),
    "large-40": work(40, LINES),
    "small-120": work(120, 10),
    "large-120": work(120, LINES),
    "turn-120": in_one_turn,
    "search": searching,
    "compaction": compacting,
    "subagent": delegating,
    "resume-with": work(40, LINES, first=True),
    "resume-without": work(40, LINES, then=True),
    "restart": restarting,
}
"""What an agent can be run through; resumed ones change sides within a session."""
