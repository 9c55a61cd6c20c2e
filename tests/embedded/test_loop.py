"""Loops of one's own: the same engine as in Pi, on both shapes of messages, on a real provider's
rules."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from foredeck import AsyncContextManager, ContextManager, ModelInfo
from foredeck.config import Config
from foredeck.embedded.format import ToolRequest
from foredeck.errors import ConfigError
from foredeck.lookup.prompts import prompt_at
from foredeck.model.messages import load_message
from foredeck.names import find_object
from foredeck.store.place import open_store
from foredeck_bench.twin.script import Script, ToolCall
from foredeck_bench.twin.server import ScriptedModel

from .loops import LOOPS, opening

MODEL = ModelInfo("test/model", 200_000, input_price=3.0, cache_seconds=300)
TEXT = "".join(f"line {number}: the quick brown fox\n" for number in range(120))


@pytest.fixture(params=sorted(LOOPS))
def format(request: pytest.FixtureRequest) -> Any:
    """Each of the shapes."""
    return request.param


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the loop works."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text(TEXT)
    (work / "b.txt").write_text(TEXT.upper())
    return work


def _manager(tmp_path: Path, folder: Path, format: Any, session: str = "loop") -> ContextManager:
    return ContextManager(session, model=MODEL, format=format, cwd=folder, home=tmp_path / "home")


def _worked(
    tmp_path: Path, folder: Path, format: str, script: Script, text: str = "Work."
) -> tuple[ScriptedModel, list[dict[str, Any]]]:
    with ScriptedModel(script) as model, _manager(tmp_path, folder, format) as context:
        messages = LOOPS[format](context, model.url, folder, opening(format, text))
    assert model.violations == []
    return model, messages


def test_a_result_goes_out_under_its_handle_and_a_second_one_by_reference(
    tmp_path: Path, folder: Path, format: str
) -> None:
    script: Script = [
        ToolCall("read", {"path": "a.txt"}),
        ToolCall("read", {"path": "a.txt"}),
        "done",
    ]
    model, messages = _worked(tmp_path, folder, format, script)
    first, again = model.requests[-1].request.results.values()
    assert first.startswith("@")
    assert TEXT in first
    assert again.startswith("Unchanged: the same as @")
    # The loop's own list has all of it.
    assert json.dumps(messages).count("line 119:") == 2


def test_the_model_asks_for_what_is_known_by_its_handle(
    tmp_path: Path, folder: Path, format: str
) -> None:
    script: Script = [
        ToolCall("read", {"path": "a.txt"}),
        lambda request: ToolCall("activate", {"id": _handle(request.text)}),
        ToolCall("activate", {"id": "@999"}),
        "done",
    ]
    model, _ = _worked(tmp_path, folder, format, script)
    first, known, unknown = model.requests[-1].request.results.values()
    assert known == f"{_handle(first)} is above."
    assert "@999" in unknown


def _handle(text: str) -> str:
    start = text.index("@")
    return text[start : text.index("\n", start)]


def test_files_have_versions_as_in_pi(tmp_path: Path, folder: Path, format: str) -> None:
    script: Script = [
        ToolCall("read", {"path": "a.txt"}),
        ToolCall("write", {"path": "a.txt", "content": "new\n"}),
        "done",
    ]
    _worked(tmp_path, folder, format, script)
    store = open_store(Config(home=tmp_path / "home"))
    found = find_object(store, str(folder / "a.txt"))
    assert [head.fields["char_count"] for head in store.history(found.id)] == [len(TEXT), 4]
    store.close()


def test_a_conversation_goes_on_in_another_process_with_the_same_bytes(
    tmp_path: Path, folder: Path, format: Any
) -> None:
    first: Script = [ToolCall("read", {"path": "a.txt"}), "done"]
    model, messages = _worked(tmp_path, folder, format, first)
    before = model.requests[-1].request.messages
    messages.append({"role": "user", "content": "And now?"})
    with ScriptedModel(["nothing"]) as second, _manager(tmp_path, folder, format) as context:
        LOOPS[format](context, second.url, folder, messages)
    assert second.requests[-1].request.messages[: len(before)] == before
    store = open_store(Config(home=tmp_path / "home"))
    assert prompt_at(store, "loop", 3).record.parent == prompt_at(store, "loop", 2).record.id
    store.close()


def test_old_results_fold_when_the_provider_keeps_nothing(
    tmp_path: Path, folder: Path, format: Any
) -> None:
    """Hours later, what nothing uses leaves the prompt, and the provider takes what is left."""
    files = [f"part{number}.txt" for number in range(40)]
    for number, name in enumerate(files):
        (folder / name).write_text(f"{name} " * 800 + str(number))
    script: Script = [*(ToolCall("read", {"path": name}) for name in files), "done"]
    settings = {"policy": "seed-window"}
    with (
        ScriptedModel(script) as model,
        ContextManager(
            "fold",
            format=format,
            cwd=folder,
            home=tmp_path / "home",
            settings=settings,
            model=ModelInfo("test/model", 30_000),
        ) as context,
    ):
        LOOPS[format](context, model.url, folder, opening(format, "Read all of it."))
    assert model.violations == []
    assert " folded: " in model.requests[-1].request.text


def test_usage_is_counted(tmp_path: Path, folder: Path, format: str) -> None:
    _worked(tmp_path, folder, format, [ToolCall("read", {"path": "a.txt"}), "done"])
    store = open_store(Config(home=tmp_path / "home"))
    reported = prompt_at(store, "loop", 2).record.cache.reported
    assert (reported.call, reported.read + reported.written + reported.fresh > 0) == (1, True)
    store.close()


async def test_the_same_for_loops_that_await(tmp_path: Path, folder: Path) -> None:
    messages: list[dict[str, Any]] = opening("chat", "Work.")
    context = AsyncContextManager("async", model=MODEL, cwd=folder, home=tmp_path / "home")
    async with context:
        sent, again = await asyncio.gather(context.prepare(messages), context.prepare(messages))
        assert sent == again == messages
        assert [tool["function"]["name"] for tool in context.tools][:1] == ["activate"]
    with pytest.raises(RuntimeError, match="async with"):
        await context.prepare(messages)


class _Answer:
    """A message as the `openai` package gives it."""

    def model_dump(self, *, exclude_none: bool) -> dict[str, Any]:
        assert exclude_none
        return {"role": "assistant", "content": "Yes."}


def test_messages_of_a_client_are_read_as_they_come(tmp_path: Path, folder: Path) -> None:
    with _manager(tmp_path, folder, "chat") as context:
        messages: list[Any] = [*opening("chat", "Work?"), _Answer()]
        sent = context.prepare([*messages, {"role": "user", "content": "Go on."}])
        assert sent[2] == {"role": "assistant", "content": "Yes."}
        with pytest.raises(ValueError, match="a str is no message"):
            context.prepare(["Work?"])  # type: ignore[list-item]


def test_what_was_counted_of_an_answer_is_not_of_another(tmp_path: Path, folder: Path) -> None:
    with _manager(tmp_path, folder, "chat") as context:
        messages = opening("chat", "Work.")
        context.prepare(messages)
        context.report({"prompt_tokens": 9999})
        messages += [{"role": "assistant", "content": "A"}, {"role": "user", "content": "More."}]
        context.prepare(messages)
        messages[2] = {"role": "assistant", "content": "B"}
        context.prepare(messages)
        assert "usage" not in context._messages._host.messages[1]


def test_an_answer_that_was_not_counted_is_estimated(tmp_path: Path, folder: Path) -> None:
    with _manager(tmp_path, folder, "chat") as context:
        messages = opening("chat", "Work.")
        context.prepare(messages)
        context.report(None)
        messages += [{"role": "assistant", "content": "A"}, {"role": "user", "content": "More."}]
        context.prepare(messages)
        assert "usage" not in context._messages._host.messages[1]


def test_a_program_is_not_its_user(tmp_path: Path, folder: Path) -> None:
    _manager(tmp_path, folder, "chat", "program").close()
    by_user = ContextManager("user", cwd=folder, home=tmp_path / "home", by_user=True)
    for context in (_manager(tmp_path, folder, "chat", "program"), by_user):
        with context:
            context.prepare(opening("chat", "Work."))
    store = open_store(Config(home=tmp_path / "home"))
    begun = {
        head.fields["session_id"]: bool(head.fields.get("begun_by"))
        for head in store.query("session")
    }
    store.close()
    assert begun == {"program": False, "user": True}


def test_failures_are_stored_as_such_on_every_wire(
    tmp_path: Path, folder: Path, format: Any
) -> None:
    script: Script = [ToolCall("activate", {"id": "@999"}), "done"]
    _, messages = _worked(tmp_path, folder, format, script)
    with _manager(tmp_path, folder, format) as context:  # another process goes on with the list
        messages.append({"role": "user", "content": "Go on."})
        context.prepare(messages)
        own = ToolRequest("b1", "bash", {"command": "exit 1"})
        asked = _asked(format, own)
        messages += [asked, _result(format, context.observed(own, "exit 1", failed=True))]
        context.prepare(messages)
    store = open_store(Config(home=tmp_path / "home"))
    found = {head.fields["tool"]: head.fields["status"] for head in store.query("toolcall")}
    assert found == {"activate": "fail", "bash": "fail"}
    # The list is the one that was stored: no message of it has become another.
    before, after = (prompt_at(store, "loop", number).record for number in (2, 3))
    assert (after.parent, after.shared) == (before.id, before.shared + len(before.keys))
    store.close()


def _asked(format: str, use: ToolRequest) -> dict[str, Any]:
    if format == "anthropic":
        block = {"type": "tool_use", "id": use.id, "name": use.name, "input": use.arguments}
        return {"role": "assistant", "content": [block]}
    function = {"name": use.name, "arguments": json.dumps(use.arguments)}
    called = {"id": use.id, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [called]}


def _result(format: str, made: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": [made]} if format == "anthropic" else made


def test_a_format_that_there_is_not_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'responses' is none of 'chat', 'anthropic'"):
        ContextManager("s", home=tmp_path, format="responses")  # type: ignore[arg-type]


def test_a_session_is_of_the_library(tmp_path: Path, folder: Path) -> None:
    with _manager(tmp_path, folder, "chat") as context:
        context.prepare(opening("chat", "Work."))
    store = open_store(Config(home=tmp_path / "home"))
    assert [head.fields["harness"] for head in store.query("session")] == ["library"]
    store.close()


def test_what_others_change_is_said_before_the_next_call(
    tmp_path: Path, folder: Path, format: Any
) -> None:
    def change(request: Any) -> ToolCall:
        del request
        file = folder / "a.txt"
        file.write_text(TEXT.replace("fox", "dog"))
        os.utime(file, (1, 1))  # settled
        return ToolCall("read", {"path": "b.txt"})

    script: Script = [ToolCall("read", {"path": "a.txt"}), change, "done"]
    model, _ = _worked(tmp_path, folder, format, script)
    notice = f"{folder / 'a.txt'} changed on disk: the copy above is old."
    assert [notice in each.request.text for each in model.requests] == [False, False, True]


def test_nothing_is_looked_at_where_watching_is_off(tmp_path: Path, folder: Path) -> None:
    with ContextManager(
        "off", cwd=folder, home=tmp_path / "home", settings={"sources.watch": "false"}
    ) as context:
        assert not context._engine.opened.watch.always_asked


def test_an_answer_is_of_the_model_that_was_asked_for_it(tmp_path: Path) -> None:
    """Not of the one that is asked next: each has a cache of its own."""
    first = ModelInfo("test/first", 200_000)
    with ContextManager("s", model=first, home=tmp_path, cwd=tmp_path) as manager:
        messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
        manager.prepare(messages)
        messages += [{"role": "assistant", "content": "done"}, {"role": "user", "content": "on"}]
        manager._model = ModelInfo("test/other", 200_000)  # as the proxy does
        manager.prepare(messages)
        chat = manager._engine.opened.session.chat
        answer = load_message(chat.branch.plan.items[1].key.address, chat.store.blob)
    assert answer["model"] == "first"
