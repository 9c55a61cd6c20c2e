"""The real Pi in a repository that somebody hostile has made."""

from __future__ import annotations

import json
import os
import stat
from contextlib import closing
from pathlib import Path

import pytest

from foredeck.model.documents import FileDocument
from foredeck.store.place import open_store
from foredeck_bench.twin.script import call
from harness import Pi
from hostile.ground import SECRET, make
from observed import errors, results

NOTE = f"# Keys\n{SECRET}\n"


def assert_not_stored(pi: Pi, text: str) -> None:
    with closing(open_store(pi.config())) as store:
        documents = [store.get(head.id, FileDocument) for head in store.query("file")]
        assert [d.id for d in documents if d is not None and text in (d.content or "")] == []


def test_what_lies_outside_is_shown_only_once_a_tool_has_read_it(pi: Pi, tmp_path: Path) -> None:
    outside = tmp_path / "of-the-user"
    outside.mkdir()
    (outside / "keys.txt").write_text(NOTE)
    (outside / "plain.txt").write_text("nothing secret\n")
    (pi.repo / "src").mkdir()
    (pi.repo / "src" / "keys.txt").symlink_to(outside / "keys.txt")
    (pi.repo / "src" / "own.txt").write_text("of the project\n")
    (pi.repo / "notes").symlink_to(outside)
    model = pi.serve(
        [
            call("ls", path="src"),
            call("activate", id="src/own.txt"),
            call("activate", id="src/keys.txt"),
            call("ls", path=str(outside)),
            call("activate", id="src/keys.txt"),
            call("activate", id=str(outside / "plain.txt")),
            # An edit that fits nothing reads the file, and shows nothing of it.
            call("edit", path=str(outside / "keys.txt"), edits=[{"oldText": "x", "newText": "y"}]),
            call("activate", id=str(outside / "keys.txt")),
            call("read", path=str(outside / "plain.txt")),
            call("activate", id=str(outside / "plain.txt")),
            "done",
        ]
    )
    tools = ["--tools", "ls,read,edit,activate"]
    assert pi.print("look around", foredeck=True, arguments=tools).code == 0
    shown = results(model.requests[-1])
    assert len([text for text in shown if "no tool has read it: use read." in text]) == 3
    assert any(text.endswith("of the project\n") for text in shown)
    assert any(text.endswith("nothing secret\n") for text in shown)
    assert all(SECRET not in recorded.request.text for recorded in model.requests)
    assert_not_stored(pi, SECRET)


GATE = """
export default function (pi) {
  pi.on("tool_call", ({ toolName, input }) =>
    toolName === "read" && /keys/.test(input.path)
      ? { block: true, reason: "keys are not for you" } : undefined);
}
"""

OWN_READ = """
export default function (pi) {
  pi.registerTool({
    name: "read", label: "read", description: "reads what it may",
    parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
    async execute(_id, { path }) { return { content: [{ type: "text", text: "read " + path }] }; },
  });
}
"""


TIDES = "# Tides\nThe harbour falls dry.\n"


def notes(pi: Pi) -> None:
    (pi.repo / "notes").mkdir()
    (pi.repo / "notes" / "keys.md").write_text(NOTE)
    (pi.repo / "notes" / "tides.md").write_text(TIDES)


@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
def test_whoever_guards_read_is_asked_before_a_file_is_shown(pi: Pi, first: bool) -> None:
    notes(pi)
    script = [
        [call("activate", id="[[Keys]]"), call("pin", id="notes/keys.md")],
        call("activate", id="[[Tides]]"),
        "done",
    ]
    model = pi.serve(script)
    loaded = {"before" if first else "extensions": [GATE]}
    assert pi.print("what do I know?", foredeck=True, **loaded).code == 0
    assert [text for text in errors(model.requests[-1]) if "keys are not for you" in text]
    assert len(errors(model.requests[-1])) == 2
    assert results(model.requests[-1])[-1].endswith("The harbour falls dry.\n")
    assert all(SECRET not in recorded.request.text for recorded in model.requests)


def test_a_guard_that_gives_an_empty_reason_is_heeded_all_the_same(pi: Pi) -> None:
    notes(pi)
    model = pi.serve([call("activate", id="[[Keys]]"), "done"])
    assert (
        pi.print(
            "what do I know?", foredeck=True, extensions=[GATE.replace("keys are not for you", "")]
        ).code
        == 0
    )
    (refused,) = errors(model.requests[-1])
    assert refused == "Tool execution was blocked"
    assert SECRET not in model.requests[-1].request.text


SEES = """
import { appendFileSync } from "node:fs";

export default function (pi) {
  for (const name of ["tool_call", "tool_result"])
    pi.on(name, ({ toolName, parentToolCallId, input }) => {
      const seen = [name, toolName, parentToolCallId, input];
      appendFileSync("seen.jsonl", JSON.stringify(seen) + "\\n");
    });
}
"""


def test_other_extensions_see_a_read_inside_the_call_that_shows_the_file(pi: Pi) -> None:
    notes(pi)
    path = str(pi.repo / "notes" / "tides.md")
    model = pi.serve([call("activate", id="[[Tides]]"), "done"])
    assert pi.print("what do I know?", foredeck=True, extensions=[SEES]).code == 0
    seen = [json.loads(line) for line in (pi.repo / "seen.jsonl").read_text().splitlines()]
    (activate,) = model.requests[-1].request.results
    assert seen[:4] == [
        ["tool_call", "activate", None, {"id": "[[Tides]]"}],
        ["tool_call", "read", activate, {"path": path}],
        ["tool_result", "read", activate, {"path": path}],
        ["tool_result", "activate", None, {"id": "[[Tides]]"}],
    ]
    assert results(model.requests[-1])[0].endswith(TIDES)


def test_where_read_is_another_extensions_only_what_it_has_read_is_shown(pi: Pi) -> None:
    notes(pi)
    model = pi.serve([call("activate", id="[[Tides]]"), "done"])
    assert pi.print("what do I know?", foredeck=True, extensions=[OWN_READ]).code == 0
    (refused,) = errors(model.requests[-1])
    assert "No read has shown" in refused
    assert "harbour" not in model.requests[-1].request.text


def test_the_real_pi_at_work_in_the_hostile_repository(pi: Pi, tmp_path: Path) -> None:
    ground = make(tmp_path / "ground")
    pi.repo.rmdir()
    pi.repo.symlink_to(ground.repo)
    script = [
        [call("read", path="src/app.py"), call("bash", command="ls -R . && touch made")],
        call("edit", path="src/app.py", edits=[{"oldText": "hEllo", "newText": "hello"}]),
        call("activate", id="src/keys.txt"),
        call("activate", id="notes/monday.md"),
        call("activate", id="git:HEAD:src/app.py"),
        call("activate", id=".pi/notes/plain.md"),
        call("activate", id=".pi/notes/loop.md"),
        call("activate", id="pipe/notes.md"),
        "done",
    ]
    for _ in ("first", "second start"):
        model = pi.serve(script)
        run = pi.print("look around", foredeck=True)
        assert run.code == 0
        assert "foredeck leaves out of the project's configuration" in run.stderr
        requests = [recorded.request.text for recorded in model.requests]
        assert [text for text in requests if SECRET in text] == []
        assert "The harbour falls dry." in requests[-1]
        assert ground.ran() == []
        ground.write("src/app.py", "print('hEllo')\n")
    assert_not_stored(pi, SECRET)


PIPES = ("logs/engine.log", "user.key", "filesystem-id", "switches", "at-work", "layers")


def test_pipes_where_files_are_expected_hold_nobody_up(pi: Pi) -> None:
    """In the state folder, in the project's `.git`, and as the `.git` of a folder above it."""
    home, above, git = pi.workspace.foredeck_home, pi.repo.parent, pi.repo / ".git"
    (home / "logs").mkdir(mode=0o700)
    for name in PIPES:
        os.mkfifo(home / name)
    os.mkfifo(above / ".git")
    git.mkdir()
    for name in ("HEAD", "config", "commondir", "index"):
        os.mkfifo(git / name)
    (pi.repo / "a.txt").write_text("plain\n")
    model = pi.serve([call("read", path="a.txt"), call("bash", command="echo done"), "done"])
    assert pi.print("look around", foredeck=True).code == 0
    assert "plain\n" in results(model.requests[-1])[0]
    assert all(stat.S_ISFIFO((home / name).stat().st_mode) for name in PIPES)
