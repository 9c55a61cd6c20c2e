"""The views of /foredeck and its short commands in the real Pi, with keys pressed."""

from __future__ import annotations

import os
import re
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from foredeck_bench.twin.script import call
from harness import TEXT, Pi, on_either
from terminal import DOWN, ENTER, ESCAPE, TerminalPi

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")

SMALL = pytest.mark.parametrize("size", [(80, 24)], ids=["80x24"])


def row(screen: str, name: str) -> list[str]:
    """The words of the row of an object; the chosen one begins with an arrow."""
    return next(line.split() for line in screen.split("\n") if f" {name} " in line)


def line_with(screen: str, text: str) -> str:
    """The first line of a screen that has this in it."""
    return next(line for line in screen.split("\n") if text in line)


def handle(screen: str, what: str) -> str:
    """The handle in the row that ends with this."""
    return next(m[1] for m in re.finditer(r"(@\d+) .*$", screen, re.MULTILINE) if what in m[0])


def gone(terminal: TerminalPi) -> str:
    """What is on the screen once the view is not."""
    return terminal.wait_until(lambda screen: "q quit" not in screen, "Pi's own screen")


@on_either("size", (80, 24), (120, 40))
def test_the_window_is_a_view_to_move_in(pi: Pi, size: tuple[int, int]) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    pi.serve([[call("read", path="a.txt"), call("bash", command="seq 400")], "done"])
    with pi.terminal(foredeck=True, size=size) as terminal:
        terminal.wait_for("foredeck")
        terminal.submit("go").wait_for("done")
        screen = terminal.submit("/foredeck").wait_for("q quit")
        file, output = handle(screen, "a.txt"), handle(screen, "bash seq 400")
        lines = screen.split("\n")
        assert lines[0].startswith("The window is about ")
        assert "of 200k tokens. Plain Pi: " in lines[0]
        assert set(lines[1]) == {"█", "░"}
        assert len(lines[1]) == size[0], "the bar is as wide as the screen"
        assert "Objects: 2 in view, 0 pinned, 0 folded." in lines
        assert row(screen, output)[:2] == ["→", output], "the newest comes first"
        assert row(screen, file)[1:3] == ["in", "view"]

        screen = terminal.press(DOWN, "p").wait_for(f"{file} is pinned")
        assert row(screen, file)[:3] == ["→", file, "pinned"]
        assert "Objects: 1 in view, 1 pinned, 0 folded." in screen
        screen = terminal.press("u").wait_for(f"{file} is not pinned any more.")
        assert row(screen, file)[2:4] == ["in", "view"]

        assert "line 3: the quick brown fox" in terminal.press(ENTER).wait_for("q back")
        terminal.press("\x1b[F").wait_for("line 59: the quick brown fox")
        terminal.press(ESCAPE).wait_for("q quit")

        terminal.press("/", "seq")
        screen = terminal.wait_until(lambda screen: "a.txt" not in screen, "only what is found")
        assert row(screen, output)[:2] == ["→", output]
        terminal.press(ENTER).wait_for("q quit")
        terminal.press("f").wait_for("seq 400, folds next")
        terminal.press("w").wait_for(f"{output} is in view: message")
        terminal.press("q").wait_for("q quit")
        assert "a.txt" in terminal.press(ESCAPE).wait_for("a.txt")
        terminal.press("s").wait_for("newest first")
        terminal.press("q")
        assert "done" in gone(terminal), "Pi's screen is as it was"
        screen = terminal.submit("/context").wait_for("q quit")
        assert screen.index(f" {file} ") < screen.index(f" {output} "), "the largest comes first"
        terminal.press("q")
        gone(terminal)
        assert terminal.quit() == 0


@SMALL
def test_tasks_are_a_view_to_move_in(pi: Pi, size: tuple[int, int]) -> None:
    pi.serve(["hello"])
    with pi.terminal(foredeck=True, size=size) as terminal:
        terminal.wait_for("foredeck")
        terminal.submit("hi").wait_for("hello")
        terminal.submit("/tasks").wait_for("This project has no tasks yet.")
        for title in ("Fix the login", "Write the notes --priority 0"):
            terminal.press("n").wait_for("What is to be done?")
            terminal.press(title).wait_for(title)
            terminal.press(ENTER).wait_for("Created t-")
        screen = terminal.wait_for("Tasks: 2 ready, 0 blocked.")
        first, second = re.findall(r"t-\w+ +ready +P\d +(\w+)", screen)
        assert (first, second) == ("Write", "Fix"), "the most urgent comes first"
        terminal.press("c").wait_for("Claimed: t-")
        terminal.press("x").wait_for("What came of it?")
        screen = terminal.press("They are in notes.md", ENTER).wait_for("(completed): ")
        assert "Tasks: 1 ready, 0 blocked." in screen
        assert "Fix the login" in line_with(screen, "→"), "the next one to be done"
        assert "summary: They are in notes.md" in terminal.press(DOWN, ENTER).wait_for("q back")
        terminal.press("q").wait_for("q quit")
        terminal.press("o").wait_for("Tasks: 2 ready, 0 blocked.")
        terminal.press("q")
        gone(terminal)
        assert terminal.quit() == 0


@SMALL
def test_what_is_found_opens_at_its_place(pi: Pi, size: tuple[int, int]) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    pi.serve([call("bash", command="seq 4000 4100"), "The wolverine sleeps.", "hello"])
    assert pi.print("Where is the kingfisher?", foredeck=True).code == 0
    with pi.terminal(foredeck=True, size=size) as terminal:
        terminal.wait_for("foredeck")
        terminal.submit("hi").wait_for("hello")
        screen = terminal.submit("/search kingfisher").wait_for("1 found for kingfisher")
        assert "Where is the kingfisher?" in line_with(screen, "→")
        assert "Where is the kingfisher?" in terminal.press(ENTER).wait_for("q back")
        terminal.press("q").wait_for("q quit")
        terminal.press("q")
        gone(terminal)
        terminal.submit("/search 4077").wait_for("1 found for 4077")
        assert "4001" in terminal.press(ENTER).wait_for("q back")
        terminal.press("q").wait_for("q quit")
        terminal.press("q")
        gone(terminal)
        assert terminal.quit() == 0


def test_objects_and_tasks_are_completed(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    pi.serve([[call("read", path="a.txt"), call("bash", command="seq 400")], "done"])
    with pi.terminal(foredeck=True) as terminal:
        terminal.wait_for("foredeck")
        terminal.submit("go").wait_for("done")
        terminal.press("/foredeck wh").wait_for("why it is folded, or the prompt changed")
        terminal.press(ENTER).wait_for("/foredeck why\n")
        terminal.press("seq").wait_for("in view  bash seq 400")
        terminal.press(ENTER).wait_until(lambda screen: "/foredeck why @" in screen, "a handle")
        terminal.press(ENTER).wait_for("is in view: message")
        terminal.submit("/foredeck tasks new Fix the login").wait_for("Created t-")
        terminal.press("/tasks claim ")
        terminal.wait_until(
            lambda screen: re.search(r"claim t-\w+ +Fix the login", screen) is not None, "its title"
        )
        terminal.press(ENTER)
        terminal.wait_until(lambda screen: "/tasks claim t-" in screen, "the task's name")
        terminal.press(ENTER).wait_for("Claimed: t-")
        assert terminal.quit() == 0


def test_long_answers_are_read_in_a_view_and_privacy_stays_visible(pi: Pi) -> None:
    pi.serve(["hello"])
    with pi.terminal(foredeck=True, size=(80, 24)) as terminal:
        terminal.wait_for("foredeck")
        terminal.submit("/foredeck private")
        terminal.wait_for("This session is private: nothing said in it is kept")
        terminal.wait_for("foredeck (private)")
        terminal.submit("hi").wait_for("hello")
        assert "foredeck (private)" in terminal.screen()
        terminal.submit("/foredeck help").wait_for("/foredeck open")
        terminal.press("\x1b[F").wait_for("this list")
        terminal.press("q")
        gone(terminal)
        assert terminal.quit() == 0


def _engine_of(pi: Pi) -> int:
    home = f"FOREDECK_HOME={pi.config().home}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (process / "cmdline").read_bytes().split(b"\0")
            if b"engine" in command and home in (process / "environ").read_bytes().split(b"\0"):
                return int(process.name)
    raise AssertionError("no engine runs")


def test_keys_that_are_typed_while_an_answer_opens_never_reach_the_model(pi: Pi) -> None:
    model = pi.serve([[call("bash", command="seq 400")], "done"])
    with pi.terminal(foredeck=True, size=(80, 24)) as terminal:
        terminal.wait_for("foredeck")
        terminal.submit("go").wait_for("done")
        terminal.press("/foredeck why @3").wait_for("/foredeck why @3")
        # The answer cannot come before all is typed.
        engine = _engine_of(pi)
        os.kill(engine, signal.SIGSTOP)
        terminal.press(ENTER)
        terminal.wait_until(lambda screen: "/foredeck why @3" not in screen, "an empty editor")
        terminal.press("next words", ENTER)
        time.sleep(0.5)  # nothing on the screen tells when Pi has read them
        os.kill(engine, signal.SIGCONT)
        terminal.wait_for("@3 is in view")
        terminal.wait_for("next words")
        assert len(model.requests) == 2, "nothing was sent"
        terminal.press(*["\x7f"] * len("next words"))
        assert terminal.quit() == 0
