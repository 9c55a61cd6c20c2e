"""`foredeck mcp`, asked by the protocol's own client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from file_agent import FileAgent
from foredeck.config import Config
from foredeck.lookup.reader import Reader
from foredeck.model.documents import user_object_id
from foredeck.model.identity import hash_text

pytest.importorskip("mcp", reason="needs the package mcp")

from mcp import Client, StdioServerParameters

from foredeck_agents.mcp_server.server import make_server

PASTED = "secret_word in a long log\n" * 400
PASTE = user_object_id(hash_text(PASTED))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with a session that was told of, one that is private, and two notes."""
    work = tmp_path / "work"
    (work / "notes").mkdir(parents=True)
    (work / "tide.py").write_text("def spring_tide():\n    return 1\n")
    (work / "notes" / "plan.md").write_text("# Plan\n\nSee [[Tides]]. #sea\n")
    (work / "notes" / "tides.md").write_text("# Tides\n")
    agent = FileAgent(tmp_path / "home", work, "0199aaaa")
    agent.answer()
    for name in ("tide.py", "notes/plan.md", "notes/tides.md"):
        agent.read(name)
    agent.answer()
    agent.run("write", path="tide.py", content="def spring_tide():\n    return 2\n")
    agent.call("bash", command="echo public_word")
    agent.answer()
    agent.close()
    secret = _Private(tmp_path / "home", work, "0199bbbb")
    secret.hear(PASTED)
    secret.answer()
    secret.call("bash", command="echo secret_word")
    secret.answer()
    secret.close()
    Reader(Config(home=tmp_path / "home")).warm()  # a request does not wait for long
    return work


class _Private(FileAgent):
    """An agent whose session keeps to itself what is said in it."""

    def open(self) -> None:
        opening = self._host.opening(str(self.cwd))
        self.engine.open_session(opening.model_copy(update={"private": True}))


@asynccontextmanager
async def _asked(folder: Path, *, writes: bool = False) -> AsyncIterator[Client]:
    """The protocol's own client, of a server in this process."""
    server = make_server(Config(home=folder.parent / "home"), folder, writes=writes)
    async with Client(server) as client:
        yield client


async def _text(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    (block,) = result.content
    text: str = block.text  # type: ignore[union-attr]
    return f"refused: {text}" if result.is_error else text


async def test_it_reads_and_no_more(folder: Path) -> None:
    process = StdioServerParameters(
        command=sys.executable,
        args=["-m", "foredeck.cli.main", "mcp", "--project", str(folder)],
        env={**os.environ, "FOREDECK_HOME": str(folder.parent / "home")},
    )
    async with Client(process) as client:
        tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == [
        f"foredeck_{name}"
        for name in (
            *("search", "read", "history", "links", "notes", "sessions", "memory", "tasks"),
        )
    ]
    assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)


async def test_what_was_done_is_found_and_read(folder: Path) -> None:
    async with _asked(folder) as client:
        found = await _text(client, "foredeck_search", query="spring_tide")
        text = await _text(client, "foredeck_read", object=str(folder / "tide.py"))
        first = await _text(client, "foredeck_read", object=str(folder / "tide.py"), version=1)
        part = await _text(client, "foredeck_read", object="chat:0199aaaa", offset=10)
        versions = await _text(client, "foredeck_history", object=str(folder / "tide.py"))
    assert "tide.py" in found
    assert text.endswith("return 2\n")
    assert first.endswith("return 1\n")
    assert "characters 10 to" in part
    assert [line[:2] for line in versions.splitlines()[1:]] == ["1:", "2:"]


async def test_notes_and_their_links(folder: Path) -> None:
    async with _asked(folder) as client:
        tagged = await _text(client, "foredeck_notes", tag="sea")
        links = await _text(client, "foredeck_links", object=str(folder / "notes" / "tides.md"))
    assert tagged.startswith("- Plan (")
    assert "mentions: Plan" in links


@pytest.mark.parametrize("called", ["Tides", "[[Tides]]", "tides"])
async def test_a_note_goes_by_its_title(folder: Path, called: str) -> None:
    async with _asked(folder) as client:
        read = await _text(client, "foredeck_read", object=called)
        links = await _text(client, "foredeck_links", object=called)
        versions = await _text(client, "foredeck_history", object=called)
        part = await _text(client, "foredeck_read", object=f"{called} chars 3-7")
    assert read.endswith("\n\n# Tides\n")
    assert "mentions: Plan" in links
    assert versions.startswith("Versions of ")
    assert part.endswith("\n\nTides")


async def test_private_sessions_are_neither_found_nor_read(folder: Path) -> None:
    async with _asked(folder) as client:
        public = await _text(client, "foredeck_search", query="public_word")
        secret = await _text(client, "foredeck_search", query="secret_word")
        read = await _text(client, "foredeck_read", object="0199bbbb:@1")
        part = await _text(client, "foredeck_read", object="0199bbbb:@1 chars 1-9")
        chat = await _text(client, "foredeck_read", object="chat:0199bbbb")
        paste = await _text(client, "foredeck_read", object=PASTE)
    assert "«public_word»" in public
    assert "secret_word" not in secret
    assert all("private session" in each for each in (read, part, chat, paste))


async def test_tasks_are_changed_where_that_is_allowed(folder: Path) -> None:
    async with _asked(folder, writes=True) as client:
        made = await _text(
            client, "foredeck_change_tasks", action="create", title="Chart the tides"
        )
        ready = await _text(client, "foredeck_tasks")
        untitled = await _text(client, "foredeck_change_tasks", action="create")
    assert "Chart the tides" in made
    assert "Chart the tides" in ready
    assert untitled.startswith("refused: ")
    assert 'needs title: {"action": "create", "title": "Fix the login redirect"}' in untitled
    async with _asked(folder) as client:
        refused = await _text(client, "foredeck_change_tasks", action="create", title="More")
        assert "foredeck_change_tasks" in refused
        assert "1 ready" in await _text(client, "foredeck_tasks")


async def test_answers_name_the_clients_tools_and_leave_what_others_wrote(folder: Path) -> None:
    title = "Have task-mutate say `foredeck tasks`"
    async with _asked(folder, writes=True) as client:
        none = await _text(client, "foredeck_tasks")
        await _text(client, "foredeck_change_tasks", action="create", title=title)
        ready = await _text(client, "foredeck_tasks")
    assert none == "This project has no tasks. Plan with foredeck_change_tasks create."
    assert title in ready


async def test_every_parameter_is_described(folder: Path) -> None:
    async with _asked(folder, writes=True) as client:
        tools = (await client.list_tools()).tools
    for tool in tools:
        for name, schema in tool.input_schema.get("properties", {}).items():
            assert schema.get("description"), (tool.name, name)


async def test_sessions_and_memory_are_listed_without_private_ones(folder: Path) -> None:
    async with _asked(folder) as client:
        sessions = await _text(client, "foredeck_sessions")
        memory = await _text(client, "foredeck_memory")
        unknown = await _text(client, "foredeck_search", query="x", session="zzzz")
    assert sessions.startswith("1 session:\n- 0199aaaa: ")
    assert "0199bbbb" not in sessions
    assert memory == "Nothing is remembered that applies here."
    assert "foredeck_sessions lists all" in unknown
    assert "`foredeck sessions`" not in unknown


async def test_what_is_wrong_is_said_to_the_model(folder: Path) -> None:
    async with _asked(folder) as client:
        missing = await _text(client, "foredeck_read", object="nowhere.py")
        version = await _text(client, "foredeck_read", object=str(folder / "tide.py"), version=9)
    assert missing.startswith("refused:")
    assert "no object is called 'nowhere.py'" in missing
    assert "versions 1 to 2, no 9" in version


async def test_what_is_wrong_with_arguments_is_said_in_words(folder: Path) -> None:
    async with _asked(folder) as client:
        missing = await _text(client, "foredeck_read")
        several = await _text(client, "foredeck_search", query="x", limit="many", type="mail")
        low = await _text(client, "foredeck_read", object="x", version=0)
    assert missing == "refused: foredeck_read: object is missing."
    assert several == (
        "refused: foredeck_search: type has to be 'message', 'toolcall', 'file', 'task', "
        "'compaction', 'observation', 'reflection' or 'memory', not 'mail'; limit has to be a "
        "valid integer, not 'many'."
    )
    assert low == ("refused: foredeck_read: version has to be greater than or equal to 1, not 0.")


def test_half_a_character_is_no_reason_to_be_silent(folder: Path) -> None:
    """Half of an emoji, as an editor in JavaScript cuts it, in what is asked and in what is
    stored."""
    agent = FileAgent(folder.parent / "home", folder, "0199cccc")
    agent.hear("half_a_smile \ud83d")
    agent.answer()
    agent.close()
    begun = {"protocolVersion": "2025-06-18", "capabilities": {}}
    requests = [
        ("initialize", {**begun, "clientInfo": {"name": "test", "version": "1"}}),
        ("tools/call", _call("foredeck_search", query="half_a_smile \ud83d")),
        ("tools/call", _call("foredeck_read", object="0199cccc:@1 \udc00")),
        ("tools/call", _call("foredeck_read", object="chat:0199cccc")),
    ]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        for id, (method, params) in enumerate(requests)
    ]
    lines.insert(1, json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
    command = [sys.executable, "-m", "foredeck.cli.main", "mcp", "--project", str(folder)]
    with subprocess.Popen(
        command,
        env={**os.environ, "FOREDECK_HOME": str(folder.parent / "home")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as server:
        assert server.stdout is not None
        answers = {}
        for line in lines:
            server.stdin.write(f"{line}\n")
            server.stdin.flush()
            if '"id"' in line:
                answer = json.loads(server.stdout.readline())
                answers[answer["id"]] = answer["result"]
        server.stdin.close()
    found, unknown, chat = (answers[id]["content"][0]["text"] for id in (1, 2, 3))
    assert "half_a_smile" in found
    assert answers[2]["isError"]
    assert "0199cccc:@1 ?" in unknown
    assert "half_a_smile ?" in chat


def _call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"name": tool, "arguments": arguments}
