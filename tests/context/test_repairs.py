"""What a list needs so that a provider accepts it."""

from __future__ import annotations

from typing import Any

import pytest

from context.driver import Host
from context.messages import Block, assistant, calls, lines, result, text, user
from context.scenes import ask, go_on, use
from context.sent import last
from foredeck.context.messages.shape import Message, find_faults, to_item
from foredeck.context.plan.wires import Repairs, repair
from foredeck.context.wording import no_named_result, no_result
from foredeck.model.documents import ToolcallDocument

CALL = assistant(calls("a", "bash"))
TWO = assistant(calls("a", "bash"), calls("b", "read"))
ALIKE = assistant(calls("a", "bash"), calls("a", "read"))
NAMELESS = assistant(calls("", "bash"), calls("", "read"))
EXCLUDED = {"role": "bashExecution", "command": "x", "excludeFromContext": True}
NOTE = {"role": "custom", "customType": "n", "content": "A note."}


def repaired(*messages: Message, start: int = 0) -> Repairs:
    return repair([to_item(message, None, {}) for message in messages], start)


def inserted(repairs: Repairs) -> dict[int, list[str]]:
    """Index to what goes before it: call ids, or "cut" for the line that begins a history."""
    return {
        index: [message.call_id or "cut" for message in ours]
        for index, ours in repairs.says.items()
    }


@pytest.mark.parametrize(
    ("messages", "says", "omitted"),
    [
        ([user("x")], {}, set()),
        ([user("x"), CALL, result("a", "bash")], {}, set()),
        ([user("x"), TWO, result("b", "read"), result("a", "bash")], {}, set()),
        ([user("x"), CALL], {2: ["a"]}, set()),
        ([user("x"), TWO, result("b", "read")], {3: ["a"]}, set()),
        ([user("x"), TWO, user("y")], {2: ["a", "b"]}, set()),
        ([user("x"), CALL, assistant("z")], {2: ["a"]}, set()),
        ([user("x"), result("a", "bash")], {}, {1}),
        ([user("x"), CALL, result("a", "bash"), result("a", "bash")], {}, {3}),
        ([user("x"), ALIKE, result("a", "bash"), result("a", "read")], {}, set()),
        ([user("x"), ALIKE, result("a", "bash")], {3: ["a"]}, set()),
        ([user("x"), ALIKE, *[result("a", "bash")] * 3], {}, {4}),
        ([user("x"), NAMELESS, result("", "bash"), result("", "read")], {}, set()),
        ([user("x"), NAMELESS, result("b", "bash"), result("c", "read")], {}, set()),
        ([user("x"), TWO, result("b", "read"), result("", "bash")], {}, set()),
        ([user("x"), CALL, user("y"), result("a", "bash")], {2: ["a"]}, {3}),
        ([user("x"), CALL, NOTE, result("a", "bash")], {2: ["a"]}, {3}),
        ([user("x"), CALL, EXCLUDED, result("a", "bash")], {}, set()),
        ([user("x"), CALL, {"role": "novel"}, result("a", "bash")], {}, set()),
        ([user("x"), assistant(calls("a", "bash"), stop="aborted")], {}, set()),
        ([user("x"), assistant(calls("a", "bash"), stop="error"), result("a", "bash")], {}, {2}),
        ([assistant("z")], {0: ["cut"]}, set()),
        ([result("a", "bash"), assistant("z")], {1: ["cut"]}, {0}),
        ([EXCLUDED, assistant("z")], {1: ["cut"]}, set()),
        ([assistant(stop="error"), assistant("z")], {1: ["cut"]}, set()),
        ([NOTE, assistant("z")], {}, set()),
        ([CALL, user("y")], {0: ["cut"], 1: ["a"]}, set()),
        ([result("a", "bash")], {1: ["cut"]}, {0}),
        ([EXCLUDED], {1: ["cut"]}, set()),
    ],
)
def test_holes_are_closed_and_what_answers_nothing_is_left_out(
    messages: list[Message], says: dict[int, list[str]], omitted: set[int]
) -> None:
    repairs = repaired(*messages)
    assert inserted(repairs) == says
    assert repairs.omitted == omitted


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([CALL, result("b", "bash", "ONE")], ["ONE"]),
        ([TWO, result("b", "read"), result("c", "bash", "ONE")], ["ONE"]),
        ([TWO, result("c", "read"), result("d", "bash")], [no_named_result()] * 2),
        ([CALL, result("b", "bash"), result("c", "bash")], [no_named_result()]),
        ([CALL, user("y"), result("b", "bash")], [no_result()]),
    ],
)
def test_a_result_that_names_another_call_is_not_taken_for_an_interruption(
    messages: list[Message], said: list[str]
) -> None:
    (says,) = repaired(user("x"), *messages).says.values()
    assert [block["text"] for say in says for block in say.blocks] == said


# In a session


def test_an_empty_result_has_at_least_its_handle(host: Host) -> None:
    ask(host)
    for number, content in enumerate(([], [text("")], [text(""), text("")])):
        blocks: list[Block] = [*content]
        sent = use(host, f"e{number}", "bash", blocks)
        assert last(sent) == f"@{3 + number}"


# Faults


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        ([], "the list is empty"),
        ([EXCLUDED], "the list is empty"),
        ([assistant("z"), user("x")], "message 0: the list begins with an answer"),
        ([user("x"), result("a", "bash", "y")], "message 1: a result without its call"),
        ([user("x"), CALL], "message 1: call a has no result"),
        ([user("x"), CALL, user("y")], "message 1: call a has no result"),
        ([user([{"keep": 0}])], "message 0: an edit was not applied"),
    ],
)
def test_a_list_that_a_provider_refuses_has_its_faults_named(
    messages: list[Any], fault: str
) -> None:
    assert find_faults(messages) == [fault]


def test_a_sound_list_has_no_faults() -> None:
    messages = [
        {"role": "system", "content": "x"},
        user("x"),
        CALL,
        EXCLUDED,
        {"role": "novel"},
        result("a", "bash", "y"),
        assistant(calls("b", "bash"), stop="aborted"),
        NOTE,
    ]
    assert find_faults(messages) == []


def test_a_call_that_was_answered_twice_keeps_both_answers(host: Host) -> None:
    """The prompt has the first: a provider takes one result for each call."""
    first, second = lines(20, "first"), lines(20, "second")
    host.add(user("Go."), assistant(calls("c1", "bash", command="x")))
    host.add(result("c1", "bash", first), result("c1", "bash", second), result("c1", "bash", first))
    sent = go_on(host, "And now?")
    assert [sent.parts[index] for index in (3, 4)] == [[], []]
    assert first in sent.text(2)
    host.restart()
    go_on(host)
    contents = [host.store.get(h.id, ToolcallDocument) for h in host.store.query("toolcall")]
    assert sorted(tool.content or "" for tool in contents if tool) == [first, second]


@pytest.mark.parametrize("id", ["x", ""])
def test_calls_with_one_id_have_an_object_each(host: Host, id: str) -> None:
    first, second = lines(20, "first"), lines(20, "second")
    host.add(user("Go."))
    host.add(assistant(calls(id, "bash", command="one"), calls(id, "bash", command="two")))
    host.add(result(id, "bash", first), result(id, "bash", second))
    sent = host.call()
    assert [sent.text(2), sent.text(3)] == [f"@3\n{first}", f"@4\n{second}"]
    host.restart()
    go_on(host)
    found = [host.store.get(head.id, ToolcallDocument) for head in host.store.query("toolcall")]
    made = {(tool.args["command"], tool.content) for tool in found if tool}
    assert made == {("one", first), ("two", second)}
    assert all(tool.id for tool in found if tool)
