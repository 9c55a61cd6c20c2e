"""What the tests of the proxy share: a folder, an agent with two tools, and the model behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from foredeck.embedded.format import ToolRequest
from foredeck_bench.twin.script import Script
from foredeck_bench.twin.server import ScriptedModel
from proxy.proxied import ProxiedAgent, RunningProxy

APIS = ("anthropic-messages", "openai-completions", "openai-responses")
PATH = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOLS: list[dict[str, Any]] = [
    {"name": "read", "description": "Read a file", "parameters": PATH},
    {"name": "write", "description": "Write a file", "parameters": PATH},
]
LONG = "".join(f"def part_{n}(value):\n    return value + {n}\n\n" for n in range(400))


def in_folder(folder: Path) -> Callable[[ToolRequest], str]:
    """The tools of the agent."""

    def run(use: ToolRequest) -> str:
        file = folder / str(use.arguments["path"])
        if use.name == "write":
            file.write_text(str(use.arguments["content"]))
            return f"Wrote {file.name}."
        return file.read_text()

    return run


def agent(
    proxy: RunningProxy, api: str, folder: Path, *, session: str | None = "s1", **options: Any
) -> ProxiedAgent:
    """An agent on an API, through a proxy. `options`: of `ProxiedAgent`."""
    tools = in_folder(folder)
    return ProxiedAgent(api, proxy.url, TOOLS, tools, session=session, **options)


@contextmanager
def proxied(
    model: ScriptedModel, home: Path, folder: Path, **options: Any
) -> Iterator[RunningProxy]:
    """A proxy in front of a model that may find nothing wrong with a prompt."""
    folder.mkdir(exist_ok=True)
    with RunningProxy(model.url, home, folder, **options) as proxy:
        yield proxy
    assert not model.violations


@contextmanager
def at_work(
    script: Script, tmp_path: Path, api: str, **options: Any
) -> Iterator[tuple[ScriptedModel, ProxiedAgent]]:
    """A model that says all of its script, and an agent before it, in a folder
    with two files."""
    folder = tmp_path / "work"
    with ScriptedModel(script) as model, proxied(model, tmp_path / "home", folder) as proxy:
        (folder / "a.py").write_text(LONG)
        (folder / "b.py").write_text("b = 1\n")
        yield model, agent(proxy, api, folder, **options)
    assert model.steps_left == 0


def goes_on(model: ScriptedModel, earlier: int, later: int) -> bool:
    """Whether a prompt begins with an earlier one, byte for byte."""
    before, after = prompts(model)[earlier], prompts(model)[later]
    return bool(after[: len(before)] == before)


def prompts(model: ScriptedModel) -> list[Any]:
    """The messages that reached the model, request by request, cache markers left out."""
    return [unmarked(recorded.request.body["messages"]) for recorded in model.requests]


def unmarked(value: Any) -> Any:
    """The same without cache markers."""
    if isinstance(value, dict):
        return {k: unmarked(v) for k, v in value.items() if k != "cache_control"}
    return [unmarked(each) for each in value] if isinstance(value, list) else value
