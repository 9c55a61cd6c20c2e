"""A loop that is not ours: OpenAI's Agents SDK, whose messages foredeck manages by its client."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from foredeck import AsyncContextManager, ModelInfo, manage
from foredeck.embedded.format import ToolRequest
from foredeck_bench.twin.script import Script, ToolCall
from foredeck_bench.twin.server import ScriptedModel

TEXT = "".join(f"line {number}: the quick brown fox\n" for number in range(120))


@pytest.fixture
def agents() -> Any:
    """The SDK, which takes a second to import: only where it is needed."""
    return pytest.importorskip("agents", reason="needs the package openai-agents")


def _foredecks(agents: Any, context: AsyncContextManager) -> list[Any]:
    """Our tools, in the shape of the SDK."""

    def made(definition: dict[str, Any]) -> Any:
        function = definition["function"]

        async def invoke(wanted: Any, arguments: str) -> str:
            use = ToolRequest(wanted.tool_call_id, function["name"], json.loads(arguments))
            return str((await context.call(use))["content"])

        return agents.FunctionTool(
            name=function["name"],
            description=function["description"],
            params_json_schema=function["parameters"],
            on_invoke_tool=invoke,
            strict_json_schema=False,
        )

    return [made(definition) for definition in context.tools]


async def _run(agents: Any, url: str, folder: Path, home: Path) -> str:
    from openai import AsyncOpenAI

    def read(path: str) -> str:
        """Read a file."""
        return (folder / path).read_text()

    agents.set_tracing_disabled(True)
    info = ModelInfo("test/model", 200_000)
    async with AsyncContextManager("sdk", model=info, cwd=folder, home=home) as context:
        client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none")
        manage(client, context)
        model = agents.OpenAIChatCompletionsModel(model="model", openai_client=client)
        tools = [agents.function_tool(read), *_foredecks(agents, context)]
        agent = agents.Agent(name="reader", instructions="Read.", model=model, tools=tools)
        result = await agents.Runner.run(agent, "Read a.txt twice.", max_turns=10)
        return str(result.final_output)


async def test_the_sdk_sends_what_foredeck_makes_of_its_messages(
    agents: Any, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    script: Script = [
        ToolCall("read", {"path": "a.txt"}),
        ToolCall("read", {"path": "a.txt"}),
        lambda request: ToolCall("activate", {"id": request.text.split("Unchanged")[0][-9:]}),
        ToolCall("activate", {"id": "a.txt"}),
        "Twice.",
    ]
    with ScriptedModel(script) as model:
        answer = await _run(agents, model.url, tmp_path, tmp_path / "home")
    assert answer == "Twice."
    assert model.violations == []
    first, again, *_ = model.requests[-1].request.results.values()
    assert first.startswith("@")
    assert again.startswith("Unchanged: the same as @")
    sent = [recorded.request.messages for recorded in model.requests]
    assert all(after[: len(before)] == before for before, after in pairwise(sent))
