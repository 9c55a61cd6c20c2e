"""Which prompt wrote a line: sessions, a person, a rename and commits on one file."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from faults import hostile, wait_for_count
from foredeck_bench.twin.script import call
from harness import Asked, Pi
from observed import results, session_of, stored
from processes import run_program

PLAN = "# Plan\n\nfirst\nsecond\nthird\n" + "".join(f"step {n} of many\n" for n in range(20))
"""Long enough for git to know it again under another name."""


def git(pi: Pi, *arguments: str) -> str:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    done = run_program("git", *who, *arguments, cwd=pi.repo, check=True)
    return done.stdout.strip()


def test_lines_are_put_down_to_their_prompts(pi: Pi, asked: Asked) -> None:
    git(pi, "init", "-q")
    pi.serve(["hello", call("write", path="plan.md", content=PLAN), "done"])
    assert pi.print("hello", foredeck=True).code == 0
    assert pi.print("write the plan", "--continue", foredeck=True).code == 0
    plan = pi.repo / "plan.md"
    git(pi, "add", "plan.md")
    git(pi, "commit", "-qm", "Plan")
    commit = git(pi, "rev-parse", "HEAD")
    plan.write_text(PLAN.replace("second", "2nd, by hand"))
    pi.serve(
        [
            call("read", path="plan.md"),
            call("bash", command="mv plan.md road.md"),
            call("edit", path="road.md", edits=[{"oldText": "third", "newText": "3rd"}]),
            call("bash", command="sed -i 's/step 0 of many/step 0 made/' road.md"),
            "done",
        ]
    )
    assert pi.print("rename and edit", foredeck=True).code == 0
    road = pi.repo / "road.md"
    road.write_text(road.read_text() + "appended by hand\n")

    said = json.loads(asked("blame", str(road), "--json"))
    lines = {line["text"]: line for line in said["lines"]}
    first, second = lines["first"], lines["2nd, by hand"]
    third, last = lines["3rd"], lines["appended by hand"]
    fourth = lines["step 0 made"]
    assert (first["by"], first["tool"], first["call"]) == ("agent", "write", 2)
    assert (second["by"], last["by"]) == ("person", "person")
    assert (third["by"], third["tool"], third["call"]) == ("agent", "edit", 3)
    assert (fourth["by"], fourth["tool"], fourth["call"]) == ("agent", "bash", 4)
    assert third["session"] != first["session"]
    assert third["model"]
    assert all(line["commit"] is None for line in said["lines"])

    git(pi, "add", "-A")
    git(pi, "commit", "-qm", "Road")
    lines = {
        line["text"]: line for line in json.loads(asked("blame", str(road), "--json"))["lines"]
    }
    assert lines["3rd"]["commit"] == git(pi, "rev-parse", "HEAD")
    assert lines["first"]["commit"] == commit

    prompt = asked("blame", f"{road}:3", "--prompt")
    assert "call 2 of" in prompt.splitlines()[0]
    assert "write the plan" in prompt
    printed = asked("blame", f"{road}:3-5")
    assert [line.split(" ")[-1] for line in printed.splitlines()[1:]] == ["first", "hand", "3rd"]


def test_what_commands_do_has_a_history_and_an_author(pi: Pi, asked: Asked) -> None:
    """A file that no tool has read, one that a heredoc makes, and one that is moved."""
    git(pi, "init", "-q")
    file, made = pi.repo / "app.py", pi.repo / "made.py"
    file.write_text("retries = 3\ntimeout = 30\n")
    (pi.repo / "old.py").write_text("old = True\n")
    (pi.repo / ".gitignore").write_text("build/\n")
    (pi.repo / ".env").write_text("KEY=1\n")
    commands = [
        "sed -i 's/retries = 3/retries = 5/' app.py",
        "cat > made.py <<'END'\nmade = 1\nEND",
        "mv old.py new.py && mkdir build && cp app.py build/ && sed -i s/1/2/ .env",
        "sed -i 's/retries = 5/retries = 7/' app.py && echo 'more = 2' >> made.py",
    ]
    model = pi.serve([*(call("bash", command=each) for each in commands), "done"])
    with pi.rpc(foredeck=True) as rpc:
        rpc.prompt("set it up")
    assert all("retries" not in text for text in results(model.requests[-1]))

    def lines(path: Path) -> list[tuple[str, str, int | None]]:
        found = json.loads(asked("blame", str(path), "--json"))["lines"]
        return [(line["text"], line["by"], line["call"]) for line in found]

    assert lines(file) == [("retries = 7", "agent", 4), ("timeout = 30", "person", None)]
    assert lines(made) == [("made = 1", "agent", 2), ("more = 2", "agent", 4)]
    assert lines(pi.repo / "new.py") == [("old = True", "person", None)]
    history = json.loads(asked("history", str(file), "--json"))["versions"]
    assert [version["note"] for version in history if version["note"] != "listed, not read"] == [
        "25 characters"
    ] * 3
    with stored(pi) as store:
        session = session_of(store)
    asked("restore", session, "--call", "1")
    assert file.read_text() == "retries = 3\ntimeout = 30\n"
    assert not made.exists()
    assert lines(file) == [("retries = 3", "person", None), ("timeout = 30", "person", None)]
    asked("restore", session, "--undo")
    assert lines(file) == [("retries = 7", "agent", 4), ("timeout = 30", "person", None)]


@pytest.mark.parametrize("case", ["written before", "written after", "ends meanwhile"])
def test_what_a_command_writes_is_its_own_though_the_engine_dies(
    pi: Pi, asked: Asked, checkout: Path, tmp_path: Path, case: str
) -> None:
    git(pi, "init", "-q")
    file, other, made = (pi.repo / name for name in ("app.py", "other.py", "made.py"))
    file.write_text("retries = 3\ntimeout = 30\n")
    other.write_text("limit = 1\n")
    write = (
        "sed -i 's/retries = 3/retries = 5/' app.py; sed -i s/1/2/ oth*; echo 'made = 1' > made.py"
    )
    wait = "touch .git/runs; until [ -e .git/goes-on ]; do sleep 0.05; done"
    order = (write, wait) if case == "written before" else (wait, write)
    reads = [call("read", path=each.name) for each in (file, other)]
    pi.serve([*reads, call("bash", command="; ".join(order)), "done"])
    rpc = pi.rpc(foredeck=True, environment=hostile(checkout, tmp_path))
    start = len(rpc.events)
    rpc.send("prompt", message="set it up")
    while not (pi.repo / ".git" / "runs").exists():
        time.sleep(0.05)
    assert rpc.kill_engine()
    while rpc.engines():
        time.sleep(0.05)
    if case != "ends meanwhile":
        wait_for_count(tmp_path, "session/open", 2)
        rpc.command("/foredeck")  # answered after the session was opened
    (pi.repo / ".git" / "goes-on").touch()
    rpc.wait_idle(start)
    # Of a new file nobody knows whether it is older than the engine.
    lines = {file: "retries = 5", other: "limit = 2"}
    lines |= {made: "made = 1"} if case == "written after" else {}
    blamed = {path: json.loads(asked("blame", str(path), "--json"))["lines"][0] for path in lines}
    assert {path: (line["text"], line["by"], line["tool"]) for path, line in blamed.items()} == {
        path: (line, "agent", "bash") for path, line in lines.items()
    }
