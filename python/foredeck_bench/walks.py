"""How far a request walks: `python -m foredeck_bench.walks` counts, for five things that foredeck
does, the functions that run, the files that they stand in, and the documents that are committed.

Each is done once before it is counted, so that nothing is counted that only a first time needs.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import foredeck
from foredeck.hosts.host import CompleteParams, CompleteResult, ModelName, ModelResult, NoModel
from foredeck.hosts.protocol import CommandParams, ToolCallParams
from foredeck.store.protocol import Batch
from foredeck_bench.file_agent import FileAgent

PACKAGE = str(Path(foredeck.__file__).parent)


@dataclass(slots=True)
class Walk:
    """What ran while something was done."""

    codes: set[CodeType] = field(default_factory=set)
    documents: int = 0

    @property
    def functions(self) -> int:
        """How many functions of foredeck's own; comprehensions and lambdas are no functions."""
        return sum(not code.co_name.startswith("<") for code in self.codes)

    @property
    def files(self) -> list[str]:
        """Where they stand."""
        return sorted({code.co_filename.removeprefix(f"{PACKAGE}/") for code in self.codes})


@contextmanager
def walked(agent: FileAgent) -> Iterator[Walk]:
    """Counts what runs in the block, on any thread that it starts."""
    walk, store = Walk(), agent.engine.opened.session.objects.store if agent.engine.opened else None
    assert store is not None
    commit = store.commit

    def counted(batch: Batch, *more: Any, **options: Any) -> Any:
        walk.documents += len(batch.puts)
        return commit(batch, *more, **options)

    def look(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            walk.codes.add(frame.f_code)

    store.commit = counted  # type: ignore[method-assign]
    sys.setprofile(look)
    try:
        yield walk
    finally:
        sys.setprofile(None)
        store.commit = commit  # type: ignore[method-assign]


async def walks(agent: FileAgent) -> AsyncIterator[tuple[str, Walk]]:
    """Each walk of an agent whose sessions are not observed, by name."""

    def read(number: int) -> None:
        agent.read(f"part{number}.py")
        agent.answer()

    agent.read("part2.py")
    yield "a prompt is assembled", await _second(agent, lambda _n: agent.answer())
    yield "a result into the next prompt", await _second(agent, read)
    _ask(agent, "deactivate", id="@3")
    yield "activate", await _second(agent, lambda n: _ask(agent, "activate", id=f"@{3 + n}"))
    search = await _second(agent, lambda n: _ask(agent, "memory-search", query=f"part{n}"))
    yield "memory-search", search
    made = [_made_task(agent, f"task {n}") for n in range(2)]
    claim = await _second(agent, lambda n: _ask(agent, "task-mutate", action="claim", id=made[n]))
    yield "a task is claimed", claim


async def observed(agent: FileAgent) -> Walk:
    """Chat is observed, as the user asks for."""

    def observe(number: int) -> None:
        for part in range(3):
            agent.read(f"part{3 * number + part}.py")
            agent.answer()
        agent.engine.command(CommandParams(session=agent.session, name="observe", args=""))

    return await _second(agent, observe)


async def _second(agent: FileAgent, do: Callable[[int], object]) -> Walk:
    do(0)
    await _settled()
    with walked(agent) as walk:
        do(1)
        await _settled()
    return walk


async def _settled() -> None:
    """Let what was begun in the background come to its end."""
    for _ in range(200):
        await asyncio.sleep(0)


def _tool(agent: FileAgent, tool: str, **given: Any) -> ToolCallParams:
    return ToolCallParams(session=agent.session, id=f"t{id(given)}", tool=tool, input=given)


def _ask(agent: FileAgent, tool: str, **given: Any) -> str:
    return agent.engine.tool_call(_tool(agent, tool, **given))["text"]


def _made_task(agent: FileAgent, title: str) -> str:
    """Its id, by what the model is answered: `Created t-5khf P2: title`."""
    return _ask(agent, "task-mutate", action="create", title=title).split()[1]


class NoModels:
    """A host without any model to ask."""

    async def offered(self, model: ModelName | None = None) -> ModelResult:
        """None."""
        del model
        return ModelResult(model=None, reason="there is none")

    async def ask(self, question: CompleteParams, *, timeout_s: float) -> CompleteResult:
        """Never called."""
        raise NoModel(str((question, timeout_s)))


async def _print(home: Path, cwd: Path) -> None:
    for index in range(6):
        path = cwd / f"part{index}.py"
        path.write_text("\n".join(f"def part{index}_{n}(): return {n}" for n in range(200)))
    print(f"{'':34} {'functions':>9} {'files':>6} {'documents':>9}")

    def show(what: str, walk: Walk) -> None:
        print(f"{what:34} {walk.functions:9} {len(walk.files):6} {walk.documents:9}")

    agent = FileAgent(home / "plain", cwd, observations="off")
    async for what, walk in walks(agent):
        show(what, walk)
    agent.close()
    agent = FileAgent(home / "observed", cwd, models=NoModels(), observations="on")
    show("chat is observed without a model", await observed(agent))
    agent.close()


def main() -> int:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        cwd = Path(name) / "project"
        cwd.mkdir()
        asyncio.run(_print(Path(name) / "home", cwd))
    return 0


if __name__ == "__main__":
    sys.exit(main())
