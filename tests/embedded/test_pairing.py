"""Results find their calls whatever their ids are, and go out as they came."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from foredeck import ContextManager, ModelInfo
from foredeck.embedded.responses import Responses, gathered, taken_apart

MODEL = ModelInfo("test/model", 200_000)
LONG = "".join(f"line {number}: the quick brown fox\n" for number in range(300))
Message = dict[str, Any]


def sent(tmp_path: Path, format: Any, *lists: list[Message], **settings: str) -> list[Message]:
    """What goes out at the last of these calls."""
    with ContextManager(
        "s", model=MODEL, format=format, home=tmp_path, cwd=tmp_path, settings=settings
    ) as context:
        for messages in lists:
            given = json.loads(json.dumps(messages))
            found = context.prepare(given)
            assert given == messages
    return found


MISSING = object()


def with_id(member: str, id: Any, /, **rest: Any) -> Message:
    return rest if id is MISSING else {member: id, **rest}


def chat(ids: list[Any], results: list[Any], texts: list[str]) -> list[Message]:
    functions = [{"name": "bash", "arguments": json.dumps({"command": text})} for text in texts]
    calls = [
        with_id("id", id, type="function", function=function)
        for id, function in zip(ids, functions, strict=True)
    ]
    return [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        *(
            with_id("tool_call_id", id, role="tool", content=text)
            for id, text in zip(results, texts, strict=True)
        ),
    ]


def anthropic(ids: list[Any], results: list[Any], texts: list[str]) -> list[Message]:
    calls = [
        with_id("id", id, type="tool_use", name="bash", input={"command": text})
        for id, text in zip(ids, texts, strict=True)
    ]
    blocks = [
        with_id("tool_use_id", id, type="tool_result", content=text)
        for id, text in zip(results, texts, strict=True)
    ]
    return [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": calls},
        {"role": "user", "content": blocks},
    ]


def responses(ids: list[Any], results: list[Any], texts: list[str]) -> list[Message]:
    said = {"type": "message", "role": "user", "content": "go"}
    calls = [
        with_id("call_id", id, type="function_call", name="bash", arguments="{}") for id in ids
    ]
    outputs = [
        with_id("call_id", id, type="function_call_output", output=text)
        for id, text in zip(results, texts, strict=True)
    ]
    return gathered([said, *calls, *outputs])


WIRES = {
    "chat": (chat, "chat"),
    "anthropic": (anthropic, "anthropic"),
    "responses": (responses, None),
}
IDS = {
    "good": (["a", "b"], ["a", "b"]),
    "swapped": (["a", "b"], ["b", "a"]),
    "alike": (["x", "x"], ["x", "x"]),
    "empty": (["", ""], ["", ""]),
    "null": ([None, None], [None, None]),
    "missing": ([MISSING, MISSING], [MISSING, MISSING]),
    "numbers": ([1, 2], [1, 2]),
    "of no sense": ([["a"], {"b": 1}], [["a"], {"b": 1}]),
    "lost by the client": (["a", "b"], ["", ""]),
    "made up by the client": (["", ""], ["a", "b"]),
    "one": (["a", ""], ["a", None]),
}


@pytest.mark.parametrize("wire", sorted(WIRES))
@pytest.mark.parametrize("ids", sorted(IDS))
def test_no_result_is_lost_and_none_said_to_be_missing(tmp_path: Path, wire: str, ids: str) -> None:
    make, format = WIRES[wire]
    messages = make(*IDS[ids], ["result ONE", "result TWO"])
    more = [*messages, *make(*IDS[ids], ["result THREE", "result FOUR"])]
    for lists in ([messages[:1], messages, more], [more]):
        home = tmp_path / str(len(lists))
        assert sent(home, format or Responses(), *lists) == more
    assert sent(home, format or Responses(), more) == more


@pytest.mark.parametrize("wire", sorted(WIRES))
@pytest.mark.parametrize(
    ("calls", "results"),
    [
        (["a"], ["b"]),
        (["a", "b"], ["a", "c"]),
        (["a", "b"], ["c", "b"]),
        (["a", "b"], ["a", "a"]),
        (["a", "b", "c"], ["c", "x", "a"]),
    ],
)
def test_the_one_result_without_a_call_answers_the_one_call_without_a_result(
    tmp_path: Path, wire: str, calls: list[str], results: list[str]
) -> None:
    make, format = WIRES[wire]
    texts = [f"result {n}" for n in range(len(calls))]
    messages = make(calls, results, texts)
    named = [id if results.index(id) == n and id in calls else None for n, id in enumerate(results)]
    (left,) = set(calls) - set(named)
    right = make(calls, [id or left for id in named], texts)
    for lists in ([messages[:1], messages], [messages], [messages, messages + messages]):
        home = tmp_path / str(len(lists[-1])) / str(len(lists))
        assert sent(home, format or Responses(), *lists)[: len(right)] == right


@pytest.mark.parametrize("wire", sorted(WIRES))
@pytest.mark.parametrize(("calls", "results"), [(["a", "b"], ["c", "d"]), (["a", "b"], ["x", "x"])])
def test_where_several_may_be_meant_none_is_said_to_be_interrupted(
    tmp_path: Path, wire: str, calls: list[str], results: list[str]
) -> None:
    make, format = WIRES[wire]
    messages = make(calls, results, ["result ONE", "result TWO"])
    out = json.dumps(sent(tmp_path, format or Responses(), messages))
    assert "interrupted" not in out
    assert "name other calls" in out


def test_of_two_results_for_one_call_neither_is_taken(tmp_path: Path) -> None:
    user, answer, one, two = chat(["a", "b"], ["x", "y"], ["ONE", "TWO"])
    answer["tool_calls"].pop()
    assert "name other calls" in sent(tmp_path, "chat", [user, answer, one, two])[2]["content"]


def test_a_result_behind_what_the_user_says_is_nobodys(tmp_path: Path) -> None:
    user, answer, result = chat(["a"], ["b"], ["ONE"])
    out = sent(tmp_path, "chat", [user, answer, {"role": "user", "content": "Well?"}, result])
    assert "interrupted" in out[2]["content"]


@pytest.mark.parametrize("wire", sorted(WIRES))
@pytest.mark.parametrize("ids", ["alike", "empty", "null", "missing"])
def test_what_is_folded_keeps_its_id(tmp_path: Path, wire: str, ids: str) -> None:
    """The first copy is read again: the second goes out as a reference to it."""
    make, format = WIRES[wire]
    first, second = (make(*IDS[ids], [text, LONG]) for text in ("one", "two"))
    more = [*first, *second]
    out = sent(tmp_path, format or Responses(), first, more)
    text = json.dumps(out)
    assert "interrupted" not in text
    assert len(text) < len(json.dumps(more))
    stripped = [json.loads(json.dumps(each)) for each in (out, more)]
    for each in stripped:
        for holder in _holders(each):
            holder.pop("content", None)
            holder.pop("output", None)
    assert stripped[0] == stripped[1]


def _holders(messages: list[Message]) -> list[Message]:
    """What holds the text of a result."""
    found = []
    for message in messages:
        if message["role"] == "tool":
            found += message.get("items") or [message]
        blocks = message.get("content")
        if isinstance(blocks, list):
            found += [block for block in blocks if block.get("type") == "tool_result"]
    return found


def test_a_result_behind_something_else_goes_out_behind_its_call(tmp_path: Path) -> None:
    user, answer, one, two = chat(["a", "b"], ["a", "b"], ["ONE", "TWO"])
    note = {"role": "developer", "content": "Be quick."}
    said = {"role": "user", "content": "Well?"}
    for between in (note, said):
        messages = [user, answer, one, between, two]
        assert sent(tmp_path / between["role"], "chat", messages) == [
            user,
            answer,
            one,
            two,
            between,
        ]
    go, call, results = anthropic(["a", "b"], ["a", "b"], ["ONE", "TWO"])
    first, second = ({**results, "content": [block]} for block in results["content"])
    later = {"role": "user", "content": [*second["content"], {"type": "text", "text": "Well?"}]}
    out = sent(tmp_path / "a", "anthropic", [go, call, first, said, later])
    blocks = [block for message in out[2:] for block in message["content"] if block != "W"]
    assert blocks[:2] == results["content"]


def test_a_call_without_a_result_is_still_said_to_have_none(tmp_path: Path) -> None:
    for ids in (["a", "b"], ["x", "x"], ["", ""]):
        user, answer, one, _ = chat(ids, ids, ["ONE", "TWO"])
        out = sent(tmp_path / "".join(ids) / "h", "chat", [user, answer, one, user])
        assert out[2] == one
        assert out[3]["tool_call_id"] == ids[1]
        assert "interrupted" in out[3]["content"]


def test_functions_of_the_api_before_tools(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "ONE"},
        {"role": "assistant", "content": None, "function_call": {"name": "g", "arguments": "{}"}},
        {"role": "function", "name": "g", "content": "TWO"},
    ]
    assert sent(tmp_path, "chat", messages[:3], messages) == messages


def test_the_output_of_a_local_shell_names_the_item_of_its_call(tmp_path: Path) -> None:
    action = {"type": "exec", "command": ["ls"], "env": {}}
    items = [
        {"type": "message", "role": "user", "content": "go"},
        {"type": "local_shell_call", "id": "lsh_1", "call_id": "c1", "action": action},
        {"type": "local_shell_call", "id": "lsh_2", "call_id": "c2", "action": action},
        {"type": "local_shell_call_output", "id": "lsh_2", "output": "TWO"},
        {"type": "local_shell_call_output", "id": "c1", "output": "ONE"},
    ]
    assert taken_apart(sent(tmp_path, Responses(), gathered(items))) == items


def test_what_a_provider_notes_in_an_answer_does_not_end_it(tmp_path: Path) -> None:
    items = [
        {"type": "message", "role": "user", "content": "go"},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "note_of_tomorrow", "id": "n1"},
        {"type": "function_call", "call_id": "b", "name": "f", "arguments": "{}"},
        {"type": "note_of_tomorrow", "id": "n2"},
        {"type": "function_call_output", "call_id": "a", "output": "ONE"},
        {"type": "function_call_output", "call_id": "b", "output": "TWO"},
    ]
    assert taken_apart(sent(tmp_path, Responses(), gathered(items))) == items
