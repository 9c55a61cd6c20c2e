"""What the engine says when the host wants to compact, and the object that comes of it."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta, timezone
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from context.conftest import NewHost
from context.driver import START_MS, Host
from context.messages import assistant, calls, lines, result, user
from context.noted import Noted
from context.scenes import ask, bash, command_text, context_tool, finish, go_on, use
from context.sent import last, message_text
from foredeck.context.messages import transcript
from foredeck.context.messages.items import Item
from foredeck.context.messages.shape import Message, to_item
from foredeck.context.messages.transcript import TranscriptNames, split_turns
from foredeck.context.plan.plan import Plan
from foredeck.context.summary import NOTHING_LOST, SummaryInput, losses_of, summarise
from foredeck.errors import ToolError
from foredeck.hosts.protocol import (
    SessionCompactParams,
    SessionCompactResult,
    SessionEventParams,
)
from foredeck.model.quoting import block


def compact(
    host: Host, reason: str = "threshold", keep: int = 2, **more: Any
) -> SessionCompactResult:
    """Ask as the shim does, about all but the last `keep` messages."""
    params = {
        "session": host.session,
        "reason": reason,
        "messages": host.messages[: len(host.messages) - keep],
        "tokens": 190_000,
        "reserve": 16_384,
        "model": host.model,
        "time_ms": host.now_ms,
        **more,
    }
    return host.engine.compact(SessionCompactParams.model_validate(params))


def work(host: Host) -> None:
    ask(host, "Fix the parser.")
    use(host, "r", "read", lines(30), path="a.py")
    bash(host, "c1")
    go_on(host, "Now the tests.", answer="It is fixed. Next step: the tests.")
    finish(host, "They pass.")


def test_it_is_cancelled_while_there_is_room(host: Host) -> None:
    work(host)
    learn(host)
    assert compact(host) == {"action": "cancel"}


def learn(host: Host) -> None:
    """Three answers with the provider's count, so that the estimate is one no more."""
    for number in range(4):
        sent = ask(host, f"Question {number}. " + "word " * 800)
        tokens = int(sent.stats.chars_sent / 3.5)
        host.add(assistant(f"Answer {number}.", usage={"input": tokens, "output": 9}))
    ask(host)


def test_the_hosts_count_holds_while_nothing_was_measured(host: Host) -> None:
    work(host)
    assert compact(host)["action"] == "summary"


@pytest.mark.parametrize(
    ("settings", "reason", "more", "action"),
    [
        ({}, "overflow", {}, "summary"),
        ({}, "manual", {"instructions": "Mind the tests."}, "host"),
        ({"manual": "foredeck"}, "manual", {}, "summary"),
        ({"manual": "foredeck"}, "manual", {"instructions": "Mind."}, "host"),
        ({"automatic": "model"}, "threshold", {}, "host"),
        ({"automatic": "model"}, "overflow", {}, "host"),
    ],
)
def test_who_writes(
    new_host: NewHost, settings: dict[str, str], reason: str, more: Any, action: str
) -> None:
    host = new_host(compaction=settings)
    work(host)
    assert compact(host, reason, **more)["action"] == action


def test_a_session_that_was_never_seen_has_room(host: Host) -> None:
    host.add(user("Hello."), assistant("Hm."), user("And?"))
    assert compact(host) == {"action": "cancel"}


def test_one_that_was_taken_back_says_so_until_it_is_made_again(new_host: NewHost) -> None:
    host = new_host(compaction={"manual": "foredeck"})
    work(host)
    summary = str(compact(host, "manual")["summary"])

    def marks(summary: str) -> list[bool | None]:
        back = SessionEventParams(session="s", kind="uncompact", summary=summary)
        host.engine.session_event(back)
        return [head.fields.get("taken_back") for head in host.store.query("compaction")]

    assert marks("Somebody else's.") == [None]
    assert marks(summary) == [True]
    host.restart()
    assert compact(host, "manual")["summary"] == summary
    assert marks("") == [None]


def items(*messages: Message) -> list[Item]:
    return [to_item({"timestamp": START_MS, **m}, None, {}) for m in messages]


def stretch(*messages: Message) -> SummaryInput:
    zone = timezone(timedelta(hours=1))
    handles = {"r": 3, "e": 4, "t": 5, "ok": 6}
    files = {"src/a.py": (7, {"char_count": 4120}), "old.py": (8, {"state": "deleted"})}
    names = TranscriptNames(handles.get, "/repo", zone)
    return SummaryInput(split_turns(items(*messages), 1), names, 9, files.get, "", (3,))


STORY = [
    user("Fix the parser\nin src/a.py, please."),
    assistant("I look.", calls("r", "read", path="src/a.py")),
    result("r", "read", lines(9)),
    assistant(calls("e", "edit", path="src/a.py"), calls("t", "bash", command="npm test")),
    result("e", "edit", "ok"),
    result("t", "bash", "Error: bad\nCommand exited with code 1", failed=True),
    assistant("Changed. The test still fails; next step: mend it."),
    user("Then mend it.", timestamp=START_MS + 8_000_000),
    assistant(calls("w", "write", path="old.py", content="x")),
]


def test_a_summary_in_full(snapshot: SnapshotAssertion) -> None:
    told = summarise(stretch(*STORY), 8000)
    assert f"{told.long}\n\n{told.short}" == snapshot


def test_turns_word_for_word(snapshot: SnapshotAssertion) -> None:
    story = stretch(*STORY)
    assert "\n".join(transcript.markdown(t, story.names) for t in story.turns) == snapshot


def test_finished_work_is_named_in_a_summary(snapshot: SnapshotAssertion) -> None:
    steps = (
        ("edit", {"path": "src/a.py"}, "ok", False),
        ("bash", {"command": "npm test"}, "12 passed", False),
        ("bash", {"command": "git commit -qam 'Mend it'"}, "", False),
        ("task-mutate", {"action": "close"}, "Closed t-7jx8 (completed): Mend all", False),
        ("bash", {"command": "pytest -q"}, "3 passed", False),
        ("bash", {"command": "pytest -q"}, "1 failed, 2 passed", True),
    )
    story = [user("Mend it.")]
    for number, (tool, arguments, output, failed) in enumerate(steps):
        story += [
            assistant(calls(f"d{number}", tool, **arguments)),
            result(f"d{number}", tool, output, failed=failed),
        ]
    chat = Plan()
    for item in items(*STORY, *story, assistant("Mended.")):
        chat.append(item)  # a result has the arguments of its call from here
    told = summarise(replace(stretch(*STORY), turns=split_turns(chat.items, 1)), 8000)

    assert told.long[told.long.index("Done:") : told.long.index("Answers:")] == snapshot


QUESTION = "Mend it.\n" + "".join(f"Step {n} of what is to be done.\n" for n in range(60)) + "End."


@pytest.mark.parametrize("chars", [400, 1500, 8000])
def test_the_question_of_a_turn_under_way_is_not_cut_like_others(
    chars: int, snapshot: SnapshotAssertion
) -> None:
    begun = [user(QUESTION), assistant("I look.", calls("ok", "bash", command="ls"))]
    story = [*STORY[:-2], *begun, result("ok", "bash", "a.py")]
    told = summarise(replace(stretch(*story), holds_question=True), chars).long
    assert len(told) <= chars
    assert (block(QUESTION) in told) == (chars == 8000)
    assert told == snapshot
    ended = summarise(replace(stretch(*story, assistant("Done.")), holds_question=True), chars)
    assert "not done" not in ended.long


def test_what_a_summary_does_not_name_is_kept(host: Host) -> None:
    ask(host, "Why does parse_config fail in src/config.py?")
    handle = bash(host, "c1").text(2).split("\n")[0]
    context_tool(host, "p", "pin", handle)
    go_on(host, "And where is merge_settings?", answer="Because of load_defaults.")
    finish(host, "In src/merge.py.")
    assert compact(host, "manual", keep=0) == {"action": "host"}
    host.engine.session_event(
        SessionEventParams(session="s", kind="compact", summary="parse_config was looked at.")
    )
    host.compact("parse_config was looked at.", keep=0)
    ask(host, "Go on.")
    said = host.call().text(1)
    assert f"Pinned, but out of view: {handle}." in said
    at = re.search(r'"(@\d+)::lost"', said)
    sent = context_tool(host, "l", "activate", f"{at[1]}::lost")
    lost = last(sent)
    assert "Commands:\n- turn 1: @" in lost
    named = [line for line in lost.splitlines() if line.startswith("- turn")][-2:]
    assert named == [
        "- turn 1: config.py, load_defaults, src/config.py",
        "- turn 2: merge.py, merge_settings, src/merge.py",
    ]


def test_the_report_of_a_stretch(snapshot: SnapshotAssertion) -> None:
    """Each kind once, what the summary has left out of it."""
    messages: list[Message] = [
        user("Where is load_all defined, in src/a.py?"),
        assistant(calls("c1", "bash", command="npm test")),
        result("c1", "bash", "boom", failed=True),
        assistant(calls("c2", "bash", command="ls lib")),
        result("c2", "bash", "x.js"),
        assistant(calls("c3", "read", path="lib/x.js")),
        result("c3", "read", "text"),
    ]
    items = Plan()
    for message in messages:
        items.append(to_item(message, None, {}))
    names = TranscriptNames({"c1": 3, "c2": 4, "c3": 5}.get)
    turns = split_turns(items.items, 1)
    assert losses_of(turns, names, "Nothing.") == snapshot
    summary = "Where is load_all defined, in src/a.py? npm test, ls lib, lib/x.js"
    open_question = (
        "Questions without an answer:\n- turn 1: Where is load_all defined, in src/a.py?"
    )
    assert losses_of(turns, names, summary) == open_question
    assert losses_of(split_turns(items.items[1:], 2), names, summary) == NOTHING_LOST


def test_the_user_sees_what_would_be_lost_and_what_was(host: Host) -> None:
    ask(host, "Why does parse_config fail?")
    bash(host, "c1")
    with pytest.raises(ToolError, match="one turn"):
        command_text(host, "compact", "--preview")
    go_on(host, answer="Because of load_defaults.")
    shown = command_text(host, "compact", "--preview")
    assert shown.startswith("What foredeck would write:\n[foredeck] Turn 1 ")
    assert "Why does parse_config fail?" in shown
    assert "What it does not name:\n" in shown
    with pytest.raises(ToolError, match="--preview shows what a summary would say"):
        command_text(host, "compact")
    with pytest.raises(ToolError, match="/compact compacts"):
        command_text(host, "compact", "now")
    finish(host, "Done.")
    compact(host, "manual", keep=0)
    host.engine.session_event(SessionEventParams(session="s", kind="compact", summary="Short."))
    said = command_text(host, "compact")
    assert re.match(r"@\d+:\nShort\.\n\nWhat it does not name:\nCommands:\n", said)
    assert "- turn 1: load_defaults, parse_config" in said


def test_notes_stand_in_the_summary_of_what_they_cover(
    host: Host, snapshot: SnapshotAssertion
) -> None:
    noted = Noted(host)
    for number in range(1, 5):
        ask(host, f"Question {number}")
        finish(host, f"Answer {number}. " * 40)
    ask(host, "And now?")
    noted.observe(2, 6, "* the second and the third were answered")
    answer = compact(host, "overflow", keep=1)
    assert answer["action"] == "summary"
    assert answer["summary"] == snapshot
    host.compact(answer["summary"], 1)
    ordinal = answer["details"]["foredeck"]["ordinal"]
    assert "Answer 3." in message_text(host.tool("x", "activate", id=f"@{ordinal} turns 3"))
    sent = ask(host, "Go on.")
    assert sent.decision.reason == "history"
