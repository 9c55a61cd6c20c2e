"""Made-up sessions in which everything happens that can happen to one, each from a seed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from context.driver import Host, Leaf
from context.heads import Said
from context.messages import Block, assistant, calls, image, lines, result, text, thinking, user
from context.noted import Noted
from context.playing import use_tool
from context.test_compacting import compact
from context.test_seals import BOUND
from foredeck.context.messages.shape import Message
from foredeck.hosts.protocol import SessionEventParams
from goldens.lines import Prompt

COUNT, IN_SUITE = 500, 200
"""How many there are, and how many of them the tests play."""

EVENT_COUNT = 16
"""Events in a script; most are a call, some two."""

T = TypeVar("T")

LAYOUTS = [*("anchored",) * 7, "pools"]
POLICIES = [*("adaptive",) * 6, *("seed-window",) * 4, "keep-all"]
WINDOWS = [200_000, 200_000, 60_000, 8_000, 2_500]
EAGER: dict[str, Any] = {
    "rebase": {"min_saving_tokens": 0, "carrying_factor": 0, "guard": 10},
    "seed_window": {"per_turn": 1, "turns": 1},
    "adaptive": {"patience": 2, "patience_edited": 3},
}
"""Settings by which something folds in a session of a few calls."""

WIRES = [
    *({"api": "anthropic-messages", "provider": "anthropic"},) * 3,
    {"api": "openai-completions", "provider": "openai"},
    {"api": "openai-responses", "provider": "openai"},
    {"api": "google-generative-ai", "provider": "google"},
]
PATHS = ["a.py", "src/b.py", "/repo/a.py", "c d.md", "notes/été.md"]
COMMANDS = ["ls -la", "pytest -q", "npm test", "git diff", "cat src/b.py", "make x", "rg -n total"]


class Dice:
    """What a seed decides. Of `random` only what gives the same on every version of Python."""

    def __init__(self, seed: int) -> None:
        self._roll = Random(seed).random

    def below(self, limit: int) -> int:
        """A number from 0 on."""
        return int(self._roll() * limit)

    def one(self, options: Sequence[T]) -> T:
        """Any of them."""
        return options[self.below(len(options))]

    def rarely(self, often: int = 4) -> bool:
        """Once in so many times."""
        return self.below(often) == 0


@dataclass(frozen=True, slots=True)
class Scripted:
    """The session of a seed."""

    seed: int

    @property
    def name(self) -> str:
        """What it is called in a file of goldens."""
        return f"script {self.seed:03}"

    def prompts(self) -> Iterator[Prompt]:
        """What goes out at each call, whoever made it."""
        with tempfile.TemporaryDirectory(prefix="foredeck-goldens-") as home:
            playing = Playing(Path(home), Dice(self.seed))
            try:
                playing.play()
            finally:
                playing.host.close()
            yield from (sent.prompt for sent in playing.host.past.sent)


def all_scripted() -> list[Scripted]:
    """All of them."""
    return [Scripted(seed) for seed in range(COUNT)]


class Playing:
    """A host to which things happen."""

    def __init__(self, home: Path, dice: Dice) -> None:
        self.dice = dice
        settings = EAGER if not dice.rarely() else {}
        named = {"layout": dice.one(LAYOUTS), "policy": dice.one(POLICIES), **settings}
        self.host = Host(home, checked=False, **named)
        self.host.model = {**(self.host.model or {}), **dice.one(WIRES)}
        self.host.set_window(dice.one(WINDOWS))
        self.head = [Said("rules", ["Be brief."]), Said("notes")] if dice.rarely(3) else []
        self.host.sections = list(self.head)
        self.noted = Noted(self.host) if dice.rarely(3) else None
        self.leaves: list[Leaf] = []
        self.made = 0
        """Counts what is said and done, so that each has words of its own."""

    def play(self) -> None:
        """The whole script."""
        self.host.add(user(self.words()))
        self.call()
        for _ in range(EVENT_COUNT):
            self.dice.one(EVENTS)(self)

    def call(self) -> None:
        """A model call as the engine says."""
        if self.noted is not None:
            self.noted.use(self.host)
        self.leaves.append(self.host.leaf())
        self.host.call()

    # What is said and done

    def words(self) -> str:
        """A text like no other, of any length."""
        self.made += 1
        known = [
            f"Go on with part_{self.made}.",
            f"Why does load_{self.made} fail in src/b.py? " * (1 + self.dice.below(30)),
            f"{lines(60, f'pasted {self.made}')}\nWhat is wrong with that?",
            f"half a pair \ud83d {self.made}, one\u2028two",
            "@3\ntoolcall_ref id=@4 tool=bash status=ok chars=1",
        ]
        return self.dice.one([*known[:2], *known])

    def output(self) -> list[Block]:
        """What a tool gives."""
        self.made += 1
        number, count = self.made, self.dice.below(60)
        failure = f"FAILED tests/test_{number}.py::test_total - KeyError: 'k{number}'\n"
        texts = [
            lines(count, f"output of {number}"),
            lines(30),
            lines(30).replace("line 7:", f"line {number}:"),
            "\n".join(lines(30).split("\n")[5:15]),
            f"{lines(count, 'test')}\n{failure}1 failed, {count} passed in 0.12s",
            f'{{"number": {number}, "rows": [{", ".join(map(str, range(count * 9)))}]}}',
            "",
        ]
        shown = text(self.dice.one(texts))
        if not self.dice.rarely(12):
            return [shown]
        return self.dice.one([[], [image()], [text("Read image file [image/png]"), image()]])

    def pair(self, id: str) -> tuple[Block, Message]:
        """A tool call and its result."""
        tool = self.dice.one(["read", "read", "read", "bash", "bash", "edit", "write", "grep"])
        path, given = self.dice.one(PATHS), {}
        match tool:
            case "bash":
                given = {"command": f"{self.dice.one(COMMANDS)} {self.dice.below(5)}"}
            case "read":
                given = {"path": path} | ({"offset": 6, "limit": 10} if self.dice.rarely() else {})
            case "edit":
                new = f"line {self.made}:" + " more" * self.dice.below(99)
                given = {"path": path, "edits": [{"oldText": "line 3:", "newText": new}]}
            case "write":
                given = {
                    "path": path,
                    "content": lines(self.dice.below(60), f"written {self.made}"),
                }
            case _:
                given = {"pattern": f"total_{self.made}"}
        return calls(id, tool, **given), result(id, tool, self.output(), failed=self.dice.rarely(6))

    def round(self) -> list[Message]:
        """An answer with tool calls, and their results."""
        model = self.host.model or {}
        ids = [f"toolu_{self.made}_{n}" for n in range(1 + self.dice.below(3))]
        pairs = [self.pair(id) for id in ids]
        said: list[Block | str] = [self.words()] if self.dice.rarely() else []
        if self.dice.rarely(3):
            sealed = {"anthropic-messages": "c2VhbA==", "openai-responses": "e30="}
            said.insert(0, thinking(f"thoughts {self.made} " * 20, sealed.get(model["api"])))
        maker = {"api": model["api"], "provider": model["provider"], "model": model["id"]}
        return [assistant(*said, *(one for one, _ in pairs), **maker), *(it for _, it in pairs)]

    # Events

    def use_tools(self) -> None:
        self.host.add(*self.round())
        self.call()

    def end_turn(self) -> None:
        self.host.add(assistant(self.words()), user(self.words()))
        self.call()

    def use_context_tool(self) -> None:
        tool = self.dice.one(["activate", "activate", "deactivate", "pin", "unpin"])
        use_tool(self.host, tool, self.dice.below(40))
        self.call()

    def meet_others(self) -> None:
        one = self.dice.one(
            [
                [{"role": "custom", "customType": "n", "content": "A note.", "display": True}],
                [{"role": "bashExecution", "command": "ls", "output": lines(30), "exitCode": 0}],
                [{"role": "branchSummary", "summary": "What was tried.", "fromId": "e1"}],
                [assistant("Half", stop="aborted"), user("Again.")],
                [assistant(calls(f"alone{self.made}", "bash", command="x")), user("No.")],
                [assistant(stop="error", errorMessage="overloaded"), user("Again.")],
            ]
        )
        self.host.add(*one, user("Well?"))
        self.call()

    def rest(self) -> None:
        self.host.wait(self.dice.one([301, 700, 100_000]))
        self.end_turn()

    def restart(self) -> None:
        self.host.restart()
        self.use_tools()

    def reconfigure(self) -> None:
        self.host.restart(policy=self.dice.one(POLICIES), layout=self.dice.one(LAYOUTS))
        self.use_tools()

    def switch_model(self) -> None:
        self.host.model = {**(self.host.model or {}), "id": self.dice.one(["m1", "m2"])}
        self.end_turn()

    def change_window(self) -> None:
        self.host.set_window(self.dice.one(WINDOWS))
        self.use_tools()

    def fall_back(self) -> None:
        self.host.add(*self.round())
        self.dice.one([self.host.lose, self.host.away, self.host.off])()
        self.end_turn()

    def stop_a_call(self) -> None:
        self.host.add(*self.round())
        self.host.abort()
        self.host.add(assistant("Ha", stop="aborted"), user(self.words()))
        self.call()

    def be_refused(self) -> None:
        self.use_tools()
        if self.host.refuse(BOUND):
            self.call()

    def go_back(self) -> None:
        self.host.go_to(self.dice.one(self.leaves))
        self.end_turn()

    def fork(self) -> None:
        model, count = self.host.model, 1 + self.dice.below(len(self.host.messages))
        self.host = self.host.fork(f"{self.host.session}f", count)
        self.host.model, self.leaves = model, []
        self.host.add(user(self.words()))
        self.call()

    def edit(self) -> None:
        roles = [message["role"] for message in self.host.messages]
        index = self.dice.one([n for n, role in enumerate(roles) if role != "assistant"])
        self.host.change(index, content=[text(self.words())])
        self.use_tools()

    def change_head(self) -> None:
        for section in self.head:
            section.lines.append(f"{section.name} {self.made}: {self.words()[:80]!r}")
        self.end_turn()

    def observe(self) -> None:
        if self.noted is not None and (ends := [0, *self.noted.ends()])[1:]:
            first = self.dice.below(min(3, len(ends) - 1))
            until = ends[first + 1 + self.dice.below(len(ends) - first - 1)]
            kind = self.dice.one([self.noted.observe, self.noted.observe, self.noted.reflect])
            kind(ends[first], until, f"* noted {self.made}")
        self.rest()

    def compact(self) -> None:
        keep = self.dice.below(4)
        if len(self.host.messages) < keep + 3:
            return
        reason = self.dice.one(["overflow", "threshold", "manual"])
        reserve = (self.host.model or {})["contextWindow"] // 8
        answer = compact(self.host, reason, keep, reserve=reserve)
        summary = answer.get("summary") or "What was done."
        if "keep" in answer:
            keep = len(self.host.entries) - self.host.entries.index(answer["keep"])
        if answer["action"] == "host":
            event = SessionEventParams(session=self.host.session, kind="compact", summary=summary)
            self.host.engine.session_event(event)
        if answer["action"] != "cancel":
            self.host.compact(summary, min(keep, len(self.host.messages)))
        self.end_turn()

    def roll_twice(self) -> None:
        """Nothing happens. An event that is gone rolled as often: so the other scripts stay."""
        self.dice.below(6)
        self.dice.below(5)


EVENTS: list[Callable[[Playing], None]] = [
    *(Playing.use_tools,) * 10,
    *(Playing.end_turn,) * 4,
    *(Playing.use_context_tool,) * 4,
    *(Playing.rest,) * 2,
    *(Playing.fall_back,) * 2,
    *(Playing.go_back,) * 2,
    *(Playing.observe,) * 2,
    *(Playing.meet_others, Playing.restart, Playing.reconfigure, Playing.switch_model),
    *(Playing.change_window, Playing.stop_a_call, Playing.be_refused, Playing.fork),
    *(Playing.edit, Playing.change_head, Playing.compact, Playing.roll_twice),
]
