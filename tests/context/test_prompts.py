"""Whole prompts of small sessions, for a reviewer to see what the model sees."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from context.conftest import NewHost
from context.driver import Host
from context.messages import assistant, calls, image, result, text, thinking, user
from context.reading import as_read
from context.scenes import ask, context_tool, finish, use
from context.sent import Sent
from context.working import Work

LAYOUTS = pytest.mark.parametrize("layout", ["anchored", "pools"])

SOURCE = """\
def total(prices):
    result = 0
    for price in prices:
        result = price
    return result


def mean(prices):
    if not prices:
        return 0
    return total(prices) / len(prices)


def spread(prices):
    return max(prices) - min(prices)


def report(prices):
    print("total", total(prices))
    print("mean", mean(prices))
    print("spread", spread(prices))
"""
FIXED = SOURCE.replace("result = price", "result += price")
FAILURE = """\
F.                                                                  [100%]
=================================== FAILURES ===================================
def test_total():
>   assert total([1, 2, 3]) == 6
E   assert 3 == 6
tests/test_prices.py:5: AssertionError
1 failed, 1 passed in 0.02s"""
LISTING = "\n".join(f"src/module_{number}.py" for number in range(12))


def mending(host: Host) -> Sent:
    """A short task within one turn: nothing goes."""
    ask(host, "The test of total fails. Mend it.")
    use(host, "c1", "bash", FAILURE, command="pytest -q")
    use(host, "c2", "read", SOURCE, path="src/prices.py")
    edit = {"oldText": "result = price", "newText": "result += price"}
    use(host, "c3", "edit", "Successfully replaced 1 block.", path="src/prices.py", edits=[edit])
    use(host, "c4", "read", FIXED, path="src/prices.py")
    use(host, "c5", "bash", "2 passed in 0.01s", command="pytest -q")
    finish(host, "`total` added nothing up; it does now.")
    return ask(host, "Thanks.")


def returning(host: Host) -> Sent:
    """After a pause, old output is references; what is needed is brought back and pinned."""
    ask(host, "Look around.")
    use(host, "c1", "bash", LISTING, command="ls src")
    use(host, "c2", "read", SOURCE, path="src/prices.py")
    for number in range(5):
        output = "\n".join(f"log {number}, entry {n} of the server" for n in range(9))
        use(host, f"d{number}", "bash", output, command=f"tail log.{number}")
    finish(host, "I have seen it.")
    host.wait(3600)
    ask(host, "How were the prices averaged?")
    context_tool(host, "t1", "activate", "src/prices.py")
    context_tool(host, "t2", "pin", "@3")
    context_tool(host, "t3", "deactivate", "@6")
    return context_tool(host, "t4", "activate", "@7")


def rereading(host: Host) -> Sent:
    """The same file again and again: whole, in part, changed a little, written anew."""
    ask(host, "Watch the file.")
    use(host, "r1", "read", SOURCE, path="src/prices.py")
    use(host, "r2", "read", SOURCE, path="src/prices.py")
    part = "\n".join(SOURCE.split("\n")[7:20])
    use(host, "r3", "read", part, path="src/prices.py", offset=8, limit=13)
    use(host, "r4", "read", FIXED, path="src/prices.py")
    anew = "\n".join(f"CONSTANT_{number} = {number}" for number in range(20))
    use(host, "r5", "write", "Wrote it.", path="src/prices.py", content=anew)
    use(host, "r6", "read", anew, path="src/prices.py")
    return context_tool(host, "t1", "activate", "src/prices.py v1")


def breaking(host: Host) -> Sent:
    """What crashes, failures and other extensions leave behind."""
    host.add(assistant("As I said before."), user([text("See this:"), image()]))
    host.add(
        assistant(
            thinking("Let me look.", "c2VhbGVk"),
            "Two at once.",
            calls("c1", "bash", command="make"),
            calls("c2", "read", path="shot.png"),
        ),
        result("c2", "read", [text("Read image file [image/png]"), image()]),
    )
    host.add({"role": "bashExecution", "command": "git status", "output": "clean", "exitCode": 0})
    host.add(result("c9", "bash", "of a call that nobody knows"))
    host.add(assistant("I was", calls("c3", "bash", command="rm -r /"), stop="aborted"))
    host.add({"role": "custom", "customType": "note", "content": "A note.", "display": True})
    ask(host, "Not that.")
    return use(host, "c4", "bash", "", command="true")


SESSIONS = {context.__name__: context for context in (mending, returning, rereading, breaking)}


@LAYOUTS
@pytest.mark.parametrize("session", SESSIONS)
def test_what_the_model_sees(
    session: str, layout: str, new_host: NewHost, snapshot: SnapshotAssertion
) -> None:
    play: Callable[[Host], Sent] = SESSIONS[session]
    assert as_read(play(new_host(layout=layout)).prompt) == snapshot


@LAYOUTS
def test_what_the_model_sees_of_files_that_others_change(
    layout: str, new_host: NewHost, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    folder = (tmp_path / "repo").resolve()
    folder.mkdir()
    work = Work(new_host(cwd=str(folder), disk=True, layout=layout))
    for name in ("kept.py", "changed.py", "deleted.py"):
        work.file(name, f"# {name}\n{SOURCE}")
    ask(work.host, "Read all three.")
    for name in ("kept.py", "changed.py", "deleted.py"):
        work.read(name)
    finish(work.host)
    work.file("changed.py", FIXED)
    (folder / "deleted.py").unlink()
    work.notice_changes()
    sent = ask(work.host, "Go on.")
    assert as_read(sent.prompt).replace(str(folder), "/repo") == snapshot
