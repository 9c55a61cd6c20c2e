"""What the user sees of the window and its objects: `/foredeck`, `/context` and their keys."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from context.conftest import NewHost
from context.driver import Host
from context.messages import lines
from context.scenes import ask, bash, outputs, use
from foredeck.errors import ToolError
from foredeck.hosts.protocol import CommandParams, CommandResult, CommandView

EAGER = {"carrying_factor": 0, "guard": 10}


def command(host: Host, name: str, args: str = "") -> CommandResult:
    """The answer to what the user has typed."""
    return host.engine.command(CommandParams(session=host.session, name=name, args=args))


def view(host: Host, name: str = "view") -> CommandView:
    """What a host with a screen is given."""
    return command(host, name)["view"]


def states(host: Host) -> dict[str, str]:
    """The state of each object by its handle."""
    return {row["name"]: row["cells"][1] for row in view(host)["rows"]}


@pytest.fixture
def busy(new_host: NewHost) -> Host:
    """A session with a file that was read twice, a long output that has folded, and short ones."""
    host = new_host(rebase=EAGER)
    host.set_window(200_000)
    ask(host)
    use(host, "r1", "read", lines(40, "code"), path="a.py")
    bash(host, "big", lines(400, "big"))
    outputs(host, 12)
    use(host, "r2", "read", lines(40, "code"), path="a.py")
    return host


def test_the_texts(busy: Host, snapshot: SnapshotAssertion) -> None:
    assert command(busy, "view")["text"] == snapshot
    found = view(busy)
    assert [found["title"], found["notes"], found["bar"], found["keys"]] == snapshot


def test_counts_and_rows_and_the_status_line_agree(busy: Host) -> None:
    found = list(states(busy).values())
    assert found.count("folded") > 1
    said = ", ".join(f"{found.count(state)} {state}" for state in ("in view", "pinned", "folded"))
    assert view(busy)["notes"][0] == f"Objects: {said}."
    record = busy.state.chat.branch_record
    assert record.stats.folded == found.count("folded")


def test_a_file_and_its_reads_are_one_row(busy: Host) -> None:
    rows = [row["cells"] for row in view(busy)["rows"]]
    assert [cells[3] for cells in rows if "a.py" in cells[3]] == ["a.py"]
    assert not any(cells[3].startswith("read ") for cells in rows)


def test_the_largest_come_first_where_it_is_asked_for(busy: Host) -> None:
    assert view(busy, "context")["rows"][0]["cells"][3] == "bash run big"
    assert view(busy)["rows"][0]["name"] > "@1"


def test_an_object_is_pinned_and_let_go_by_the_user(busy: Host) -> None:
    name = next(name for name, state in states(busy).items() if state == "in view")
    assert command(busy, "pin", name)["text"] == f"{name} is pinned: it stays in view."
    assert states(busy)[name] == "pinned"
    outputs(busy, 30, "later")
    assert states(busy)[name] == "pinned"
    busy.restart()
    ask(busy)
    assert states(busy)[name] == "pinned", "the record of a call has kept it"
    assert command(busy, "unpin", name)["text"] == f"{name} is not pinned any more."
    assert command(busy, "unpin", name)["text"] == f"{name} is not pinned."


def test_an_object_folds_at_the_users_word(busy: Host) -> None:
    name = next(name for name, state in states(busy).items() if state == "in view")
    assert "folds when" in command(busy, "fold", name)["text"]
    assert next(row for row in view(busy)["rows"] if row["name"] == name)["cells"][3].endswith(
        ", folds next"
    )
    busy.wait(301)
    ask(busy)
    assert states(busy)[name] == "folded"
    assert command(busy, "fold", name)["text"] == f"{name} is folded."
    assert f"activate {name}" in command(busy, "pin", name)["text"]


def test_what_has_folded_can_be_read(busy: Host) -> None:
    name = next(name for name, state in states(busy).items() if state == "folded")
    assert command(busy, "open", name)["text"].startswith("output of")


@pytest.mark.parametrize("verb", ["open", "pin", "unpin", "fold"])
def test_which_object_has_to_be_said(busy: Host, verb: str) -> None:
    with pytest.raises(ToolError, match=f"/foredeck {verb} @12"):
        command(busy, verb)
    with pytest.raises(ToolError, match="no @99"):
        command(busy, verb, "@99")


def test_before_the_first_call(host: Host) -> None:
    answer = command(host, "view")
    assert answer["text"].startswith("No call has gone out")
    assert answer["view"]["rows"] == []
