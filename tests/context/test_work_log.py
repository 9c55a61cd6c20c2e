"""What earlier sessions of the project finished stands in the head; what this one did, in the
summary of its chat."""

from __future__ import annotations

from syrupy.assertion import SnapshotAssertion

from context.conftest import NewHost
from context.driver import Host
from context.scenes import ask, finish, use
from context.sent import Sent
from foredeck.worklog import FinishedWork, WorkLog, describe

DAY_MS = 86_400_000
START_MS = 1_770_000_000_000


def work(host: Host) -> Sent:
    """An edit, passing tests and a commit."""
    ask(host)
    steps = (
        ("edit", {"path": "src/a.py", "oldText": "a", "newText": "b"}, "Edited src/a.py"),
        ("bash", {"command": "pytest -q"}, "12 passed in 0.3s"),
        ("bash", {"command": "git commit -qam 'Read b'"}, "(no output)"),
    )
    for number, (tool, arguments, output) in enumerate(steps):
        id = f"{host.session}-{number}"
        use(host, id, tool, output, **arguments)
    return finish(host)


def test_in_other_projects_it_adds_nothing(new_host: NewHost) -> None:
    first = new_host(session="first")
    work(first)
    first.close()
    second = new_host(session="second", cwd="/elsewhere")
    second.sections = None

    sent = ask(second)

    assert sent.prompt == sent.messages


def test_its_lines(snapshot: SnapshotAssertion) -> None:
    done = [
        FinishedWork("commit", "Old", "", (), "s", START_MS - 400 * DAY_MS),
        FinishedWork("tests", "npm test", "3 passed", (), "s", START_MS),
        FinishedWork("tests", "npm test", "4 passed", ("/repo/a.ts",), "s", START_MS + DAY_MS),
        FinishedWork("tests", "tsc", "0 errors", (), "s", START_MS + DAY_MS),
        FinishedWork("tests", "make t", "1 passed", (), "s", START_MS + DAY_MS),
        FinishedWork(
            "commit", 'Say "b"', "", ("/repo/a.ts", "/x/b.ts", "c.ts"), "s", START_MS + 2 * DAY_MS
        ),
        FinishedWork("task", "Write it", "", (), "s", START_MS + 2 * DAY_MS),
    ]

    assert WorkLog(done, "/repo").text(1000).split("\n") == snapshot
    assert describe(done[2], "/repo") == "npm test: 4 passed (a.ts)"


def test_it_keeps_its_limit() -> None:
    done = [FinishedWork("commit", f"Number {n}", "", (), "s", START_MS + n) for n in range(9)]

    for limit in range(0, 300, 7):
        text = WorkLog(done, "/repo").text(limit)
        assert len(text) <= limit
        assert not text or text.startswith('2 February: committed "Number 8"')


def test_a_layer_that_cannot_be_read_keeps_no_session_from_opening(new_host: NewHost) -> None:
    first = new_host(session="first")
    work(first)
    first.restart()
    ask(first)
    first.close()
    (layer,) = (first.home / "layers").glob("worklog-*.sqlite")
    for file in layer.parent.glob(f"{layer.name}*"):
        file.unlink()
    layer.mkdir()
    second = new_host(session="second")
    second.sections = None
    sent = ask(second)

    assert sent.prompt == sent.messages
