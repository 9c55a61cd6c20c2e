"""What a person does at the terminal: prompts, branches, copies, reload, compaction."""

from __future__ import annotations

import os

import pytest

from foredeck.lookup.sessions import branches_of
from foredeck.store.store import Store
from foredeck_bench.twin.script import call
from harness import TEXT, Pi, both_versions
from observed import answered, assert_stable, calls_of, messages, session_of, stored
from terminal import ENTER, UP, TerminalPi

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")


def ask(pi: TerminalPi, prompt: str, answer: str) -> None:
    """Type a prompt and wait until Pi has answered and is at rest."""
    pi.submit(prompt)
    at_rest(pi, answer)


def at_rest(pi: TerminalPi, answer: str) -> None:
    """Wait until the answer is there and nothing runs."""
    pi.wait_until(lambda screen: answer in screen and "Working" not in screen, answer)


def choose(pi: TerminalPi, command: str, title: str, entry: str) -> None:
    """Open a list with a command, go up to an entry, and take it.

    A screen that is half drawn may lack the cursor: a key for each of those would go too far.
    """
    screen = pi.submit(command).wait_until(lambda now: title in now and selected(now) != "", title)
    while entry not in (before := selected(screen)):
        pi.press(UP)
        screen = pi.wait_until(
            lambda now, old=before: selected(now) not in ("", old), f"above {before}"
        )
    pi.press(ENTER)


def selected(screen: str) -> str:
    """The line of a list that the cursor is on."""
    lines = [line for line in screen.split("\n") if line.startswith("›")]
    return lines[-1] if lines else ""


def navigate(pi: TerminalPi, entry: str) -> None:
    """Go to an entry of the session's tree, without a summary of the branch that is left."""
    choose(pi, "/tree", "Session Tree", entry)
    pi.wait_for("→ No summary")
    pi.press(ENTER).wait_for("Navigated to selected point")


def test_branches_and_copies_at_the_terminal(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve(
        [
            [call("read", path="a.txt"), call("bash", command="seq 300")],
            "it is done",
            [call("bash", command="seq 500"), call("pin", id="a.txt")],
            "that was left",
            call("bash", command="seq 600"),
            "that was right",
            call("read", path="a.txt"),
            "left once more",
            "asked in the fork",
            "asked in the clone",
            "after the reload",
            "in a new session",
        ]
    )
    with pi.terminal(foredeck=True) as terminal:
        terminal.wait_until(lambda screen: "\nforedeck\n" in f"{screen}\n", "foredeck")
        ask(terminal, "please work", "it is done")
        ask(terminal, "go left", "that was left")
        navigate(terminal, "assistant: it is done")
        ask(terminal, "go right", "that was right")
        navigate(terminal, "assistant: that was left")
        ask(terminal, "left again", "left once more")
        choose(terminal, "/fork", "Fork from Message", "left again")
        terminal.wait_for("Forked to new session")
        terminal.press(ENTER)
        at_rest(terminal, "asked in the fork")
        terminal.submit("/clone").wait_for("Cloned to new session")
        ask(terminal, "and here", "asked in the clone")
        terminal.submit("/reload").wait_for("Reloaded keybindings, extensions")
        ask(terminal, "still here", "after the reload")
        terminal.submit("/foredeck").wait_for("1 pinned, ")
        terminal.press("q").wait_until(lambda screen: "q quit" not in screen, "Pi's own screen")
        terminal.submit("/new").wait_for("New session started")
        ask(terminal, "begin anew", "in a new session")
        assert terminal.quit() == 0
    sent = [messages(request) for request in answered(model)]
    work, left, right, again, fork, clone, reloaded, new = sent[1], *sent[3::2][:3], *sent[8:]
    assert right[: len(work)] == work
    assert again[: len(left)] == left
    assert fork[: len(left)] == left
    assert clone[: len(fork)] == fork
    assert reloaded[: len(clone)] == clone
    assert [message["role"] for message in new] == ["user", "system"], "the effort's marker"
    with stored(pi) as store:
        assert calls_by_session(store) == [8, 1, 2, 1]
        assert {record.decision.kind for record in calls_of(store)} == {"append"}


def calls_by_session(store: Store) -> list[int]:
    """How many calls each session had, in the order in which they began."""
    sessions = [record.session for record in calls_of(store)]
    return [sessions.count(session) for session in dict.fromkeys(sessions)]


@both_versions
def test_compaction_at_the_terminal(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve(
        [
            [call("read", path="a.txt"), call("bash", command="seq 300")],
            "it is done",
            "x" * 90_000 + " much was said",
            "the third answer",
            "here it goes on",
            "and on it goes",
        ]
    )
    with pi.terminal(foredeck=True) as terminal:
        terminal.wait_until(lambda screen: "\nforedeck\n" in f"{screen}\n", "foredeck")
        ask(terminal, "please work", "it is done")
        ask(terminal, "say much", "much was said")
        ask(terminal, "third question", "the third answer")
        terminal.submit("/compact keep the names").wait_for("[compaction]")
        ask(terminal, "go on", "here it goes on")
        ask(terminal, "and on", "and on it goes")
        assert terminal.quit() == 0
    assert_stable(answered(model)[-2:])
    with stored(pi) as store:
        assert len(branches_of(store, session_of(store)).all) == 1
        # The long answer, whose middle has folded, is an object of that type, too.
        (compaction,) = store.query("compaction", {"asked_by": "user"})
        assert compaction.fields["instructions"] == "keep the names"
