"""A command that fails as one before it did says in its own result in which form it worked."""

from __future__ import annotations

from syrupy.assertion import SnapshotAssertion

from context.conftest import NewHost
from context.driver import Host
from context.messages import assistant, calls, result
from context.scenes import ask
from context.sent import Sent

SAID = "unknown flag: --stat\n\nCommand exited with code 1"


def run(host: Host, id: str, command: str, output: str = "done", *, failed: bool = False) -> Sent:
    """The model runs a command; the call that sees its result."""
    host.add(assistant(calls(id, "bash", command=command)), result(id, "bash", output))
    host.messages[-1]["isError"] = failed
    return host.call()


def learn(host: Host) -> None:
    """A form that fails, and one that works."""
    ask(host)
    run(host, "c1", "gh pr diff 88 --stat", SAID, failed=True)
    run(host, "c2", "gh pr diff 88 --name-only 2>&1 | head -5", "a.py")


def lines(sent: Sent) -> list[str]:
    """The lines of ours in a prompt."""
    texts = [sent.text(index) for index in range(len(sent.messages))]
    return [line for text in texts for line in text.split("\n") if line.startswith("[foredeck]")]


def test_in_the_same_session(new_host: NewHost, snapshot: SnapshotAssertion) -> None:
    host = new_host()
    learn(host)

    sent = run(host, "c3", "gh pr diff 104 --stat", SAID, failed=True)

    assert sent.text(len(sent.messages) - 1) == snapshot
    assert len(lines(sent)) == 1


def test_in_a_later_session_of_the_project(new_host: NewHost, snapshot: SnapshotAssertion) -> None:
    first = new_host(session="first")
    learn(first)
    first.close()
    second = new_host(session="second")
    ask(second)

    sent = run(second, "d1", "gh pr diff 104 --stat", SAID, failed=True)

    assert lines(sent) == snapshot


def test_not_in_another_project(new_host: NewHost) -> None:
    first = new_host(session="first")
    learn(first)
    first.close()
    second = new_host(session="second", cwd="/elsewhere")
    ask(second)

    assert lines(run(second, "d1", "gh pr diff 104 --stat", SAID, failed=True)) == []


def test_once_and_it_stays(new_host: NewHost) -> None:
    host = new_host()
    learn(host)
    shown = lines(run(host, "c3", "gh pr diff 104 --stat", SAID, failed=True))
    host.restart()

    assert lines(run(host, "c4", "gh pr diff 105 --stat", SAID, failed=True)) == shown


def test_a_list_that_was_sent_before_stays_as_it_was(new_host: NewHost) -> None:
    host = new_host()
    ask(host)
    host.add(
        assistant(calls("c1", "bash", command="gh pr diff 88 --stat")),
        result("c1", "bash", SAID, failed=True),
        assistant(calls("c2", "bash", command="gh pr diff 88 --name-only")),
        result("c2", "bash", "a.py"),
        assistant(calls("c3", "bash", command="gh pr diff 9 --stat")),
        result("c3", "bash", SAID, failed=True),
        assistant(calls("c4", "bash", command="ls")),
        result("c4", "bash", "a.py"),
    )

    assert lines(host.call()) == []


def test_a_branch_knows_only_its_own_commands(new_host: NewHost) -> None:
    host = new_host()
    ask(host)
    before = host.leaf()
    run(host, "c1", "gh pr diff 88 --stat", SAID, failed=True)
    run(host, "c2", "gh pr diff 88 --name-only", "a.py")
    host.go_to(before)

    assert lines(run(host, "c3", "gh pr diff 104 --stat", SAID, failed=True)) == []


def test_off(new_host: NewHost) -> None:
    host = new_host(worklog={"lines": False})
    learn(host)

    assert lines(run(host, "c3", "gh pr diff 104 --stat", SAID, failed=True)) == []


def test_no_secret_is_repeated(new_host: NewHost) -> None:
    host = new_host()
    ask(host)
    token = "ghp_" + "a1B2" * 9
    run(host, "c1", f"curl --stat -H token:{token} x.org/a", SAID, failed=True)
    run(host, "c2", f"curl -H token:{token} x.org/a")

    (line,) = lines(run(host, "c3", f"curl --stat -H token:{token} x.org/a", SAID, failed=True))

    assert token not in line


def test_parallel_failures_each_say_it_on_their_own_result(new_host: NewHost) -> None:
    host = new_host()
    learn(host)
    run(host, "c3", "npm tst", "npm: unknown command: tst", failed=True)
    run(host, "c4", "npm tst -q", "1 passed")
    host.add(
        assistant(
            calls("c5", "bash", command="gh pr diff 9 --stat"), calls("c6", "bash", command="ls")
        ),
        result("c5", "bash", SAID, failed=True),
        result("c6", "bash", "a.py"),
    )

    sent = host.call()

    assert len(lines(sent)) == 1
    assert sent.text(len(sent.messages) - 2).startswith("[foredeck] worked before as:")
