"""Message lists of a Pi host, sound ones and broken ones, for Hypothesis.

A `Script` is a list of steps; each step is what happens between two model calls. Scripts are
plain data, so that the same one can be played on several hosts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from context.messages import Block, assistant, calls, image, lines, result, text, thinking, user
from foredeck.context.messages.shape import Message


@dataclass(frozen=True)
class Step:
    """What happens between two model calls."""

    messages: list[Message]
    wait_s: int = 0
    tool: str = ""
    """A context tool that the model uses after the messages, on the object numbered `target`."""
    target: int = 0


Script = list[Step]
WINDOWS = st.sampled_from([200_000, 200_000, 2_500])
"""Context windows in tokens: one that is never full, one that soon is."""

TEXTS = [
    "",
    "ok",
    "x" * 180,
    lines(12),
    lines(30),
    lines(30).replace("line 7:", "line seven:"),
    lines(60, "row"),
    "\n".join(lines(30).split("\n")[5:15]),
    f"one\u2028two\u2029three {'wide ' * 60}",
    f"half a pair \ud83d {'and more ' * 40}",
    "@3\ntoolcall_ref id=@4 tool=bash status=ok chars=1",
    "@3\n@4 folded: 1 chars",
    "[foredeck] No result: the call was interrupted.",
    '{"keep": 0} $text ' + "z" * 300,
]
PATHS = ["a.py", "src/b.py", "/repo/a.py", "c d.md", "été\u2028.txt"]

texts = st.sampled_from(TEXTS)
short_texts = st.sampled_from(["", "Go on.", "\u2028", "\udc00 broken", "Why?"])


def contents() -> st.SearchStrategy[list[Block]]:
    """What a tool gave: text, nothing, images, several blocks."""
    return st.one_of(
        texts.map(lambda t: [text(t)]),
        texts.map(lambda t: [text(t)]),
        st.just([]),
        st.just([image()]),
        texts.map(lambda t: [text("Read image file [image/png]"), image(), text(t)]),
        st.lists(texts.map(text), min_size=2, max_size=3),
    )


@st.composite
def tool_calls(draw: st.DrawFn, id: str) -> tuple[Block, Message]:
    """A call with the result that answers it."""
    tool = draw(st.sampled_from(["read", "read", "bash", "bash", "edit", "write", "grep", "odd"]))
    arguments: dict[str, Any] = {}
    if tool == "bash":
        arguments["command"] = draw(st.sampled_from(["ls", "make test", "cat a.py"]))
    else:
        arguments["path"] = draw(st.sampled_from(PATHS))
    if tool == "read" and draw(st.booleans()):
        arguments |= {"offset": draw(st.sampled_from([1, 6])), "limit": 10}
    if tool == "write":
        arguments["content"] = draw(texts)
    if tool == "edit":
        arguments["edits"] = [{"oldText": "line 3:", "newText": draw(short_texts)}]
    answer = result(id, tool, draw(contents()), failed=draw(st.integers(0, 5)) == 0)
    if draw(st.integers(0, 5)) == 0:
        answer["details"] = {"diff": "x", "foredeck": "not ours"}
    return calls(id, tool, **arguments), answer


thoughts = st.one_of(
    st.just(thinking("plain thoughts")),
    st.just(thinking("sealed thoughts", "c2VhbA==")),
    st.just(thinking("", "ZW5jcnlwdGVk", redacted=True)),
    st.just(thinking("named", "reasoning_content")),
)


@st.composite
def tool_rounds(draw: st.DrawFn, first: int) -> list[Message]:
    """An assistant message with calls, and all their results."""
    count = draw(st.integers(1, 3))
    repeated = draw(st.integers(0, 4)) == 0
    ids = [f"call_{n}" if repeated else f"toolu_{first}_{n}" for n in range(count)]
    pairs = [draw(tool_calls(id)) for id in ids]
    before = draw(st.lists(thoughts, max_size=1)) + draw(
        st.lists(texts.filter(bool).map(text), max_size=1)
    )
    answers = draw(st.permutations([answer for _, answer in pairs]))
    return [assistant(*before, *(call for call, _ in pairs)), *answers]


def turn_ends() -> st.SearchStrategy[list[Message]]:
    """The model answers, and the user goes on."""
    questions = st.one_of(
        short_texts.filter(bool).map(user),
        st.builds(lambda t: user([text(t), image(), text("and this")]), texts.filter(bool)),
        texts.filter(bool).map(user),
    )
    return st.builds(lambda t, u: [assistant(t), u], texts.filter(bool), questions)


def asides() -> st.SearchStrategy[list[Message]]:
    """Messages that are neither the model's nor the user's own."""
    return st.sampled_from(
        [
            [{"role": "custom", "customType": "note", "content": "A note.", "display": True}],
            [{"role": "bashExecution", "command": "ls", "output": lines(9), "exitCode": 0}],
            [
                {
                    "role": "bashExecution",
                    "command": "env",
                    "output": lines(30),
                    "excludeFromContext": True,
                }
            ],
            [{"role": "branchSummary", "summary": "What was tried.", "fromId": "e1"}],
            [{"role": "novel", "content": [text("a role of tomorrow")], "weight": 1.5}],
            [assistant("Half", thinking("a thought"), stop="aborted"), user("Again.")],
            [assistant(stop="error", errorMessage="overloaded"), user("Again.")],
        ]
    )


@st.composite
def steps(draw: st.DrawFn, number: int) -> Step:
    """A round of tools, the end of a turn, or a use of our own tools."""
    kind = draw(st.sampled_from(["tools", "tools", "tools", "turn", "turn", "context"]))
    wait_s = draw(st.sampled_from([0, 0, 0, 0, 600]))
    match kind:
        case "tools":
            aside = draw(asides()) if draw(st.integers(0, 4)) == 0 else []
            return Step([*aside, *draw(tool_rounds(number))], wait_s)
        case "turn":
            return Step(draw(turn_ends()), wait_s)
    tool = draw(st.sampled_from(["activate", "activate", "deactivate", "pin", "unpin"]))
    return Step([], wait_s, tool, draw(st.integers(0, 9)))


@st.composite
def sound_scripts(draw: st.DrawFn, max_steps: int = 10) -> Script:
    """A conversation as Pi keeps it: it begins with the user, and every call has its result."""
    first = draw(st.one_of(short_texts.filter(bool), texts.filter(bool)).map(user))
    count = draw(st.integers(1, max_steps))
    return [Step([first]), *(draw(steps(number)) for number in range(count))]


@st.composite
def broken_scripts(draw: st.DrawFn) -> Script:
    """What other extensions, crashes and old files can make of a list."""
    script = draw(sound_scripts(max_steps=5))
    messages = [message for step in script for message in step.messages]
    for _ in range(draw(st.integers(1, 4))):
        position = draw(st.integers(0, len(messages)))
        match draw(st.sampled_from(["lose", "lose", "swap", "strange", "again"])):
            case "lose" if position < len(messages) and len(messages) > 1:
                del messages[position]
            case "swap" if 0 < position < len(messages):
                pair = messages[position - 1 : position + 1]
                messages[position - 1 : position + 1] = reversed(pair)
            case "again" if position < len(messages):
                messages.append(messages[position])
            case _:
                messages.insert(position, draw(strange_messages()))
    cuts = sorted(draw(st.sets(st.integers(1, len(messages)), max_size=3)) | {len(messages)})
    return [Step(messages[start:end]) for start, end in zip([0, *cuts], cuts, strict=False)]


def strange_messages() -> st.SearchStrategy[Message]:
    """Messages that do not belong where they are, or lack what they should have."""
    return st.sampled_from(
        [
            result("nobody", "bash", lines(30)),
            result("call_0", "read", lines(30)),
            {"role": "toolResult", "content": "a string", "timestamp": None},
            {"role": "user", "content": ""},
            {"role": "user", "content": []},
            {"role": "user"},
            {"role": "user", "content": "When?", "timestamp": "yesterday"},
            {"role": "assistant", "content": "a string", "stopReason": "stop"},
            {"role": "assistant", "content": [], "stopReason": "stop"},
            assistant({"type": "toolCall", "id": "t", "name": "bash", "arguments": "text"}),
            assistant(calls("alone", "bash", command="x"), stop="aborted"),
            {"content": [text("no role")]},
            {"role": "compactionSummary", "summary": "All before.", "tokensBefore": 9},
        ]
    )
