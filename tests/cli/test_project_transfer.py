"""`foredeck export --project` and `import`: a project goes from one machine to another."""

from __future__ import annotations

import json
import shutil
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from cli.stored_session import SESSION as STORED
from foredeck.cli.main import main
from foredeck.model.documents import FileDocument, SessionDocument, identity_hash, session_object_id
from foredeck.model.records import imported_id
from foredeck.model.sources import FilesystemSource
from foredeck.store.portable.export import ProjectPlace, export_project
from foredeck.store.portable.importing import import_file
from foredeck.store.protocol import Batch
from foredeck.store.store import open_sqlite
from replay.recordings import text, write_session

SESSION, PRIVATE = "0199cccc-0000-7000-8000-00000000000", "0199dddd-0000-7000-8000-000000000002"
ELSEWHERE = "0199eeee-0000-7000-8000-000000000003"
SAID = "The zebrafish parser is slow."


@dataclass
class Machine:
    """A home folder with a store of its own, on a file system of its own, and a repository."""

    home: Path

    @property
    def repo(self) -> Path:
        return self.home / f"work-of-{self.home.name}" / "repo"

    @property
    def state(self) -> Path:
        return self.home / ".local" / "state" / "foredeck"

    def begin(self) -> None:
        (self.repo / ".git").mkdir(parents=True)
        (self.repo / "notes").mkdir()

    def does(self, *arguments: str, code: int = 0, agent: str | None = None) -> str:
        """What a command prints. `agent`: the session whose agent runs it."""
        out, err = (TextIOWrapper(BytesIO(), "utf-8") for _ in range(2))
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            for name in ("FOREDECK_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
                patch.delenv(name, raising=False)
            patch.setenv("HOME", str(self.home))
            patch.setenv("FOREDECK_SOURCES__FILESYSTEM_ID", self.home.name)
            if agent is not None:
                patch.setenv("FOREDECK_SESSION", agent)
            patch.chdir(self.repo)
            ended = main(list(arguments))
        for said in (out, err):
            said.seek(0)
        assert ended == code, err.read()
        return (out if code == 0 else err).read()

    def told(self, *arguments: str) -> Any:
        """The same as JSON."""
        return json.loads(self.does(*arguments, "--json"))

    def ingest(self, session: str, said: str) -> None:
        answer = {"role": "assistant", "content": [text("I see.")], "stopReason": "stop"}
        messages = ({"role": "user", "content": said}, answer)
        file = write_session(
            self.home / f"{session}.jsonl", *messages, id=session, cwd=str(self.repo)
        )
        self.does("ingest", str(file), "--yes")


@pytest.fixture
def here(tmp_path: Path) -> Machine:
    """A machine with a project in which something of everything is."""
    machine = Machine(tmp_path / "one")
    machine.begin()
    (machine.repo / "notes" / "tides.md").write_text("# Tides\nSee [[Moon]] #sea\n")
    machine.does("index", "notes")
    machine.ingest(SESSION, SAID)
    machine.does("tasks", "new", "Build the login", "--priority", "1")
    machine.does("working", "Tech Stack", "- Language: Python")
    machine.does("memory", "add", "We ship on Fridays", "--category", "decision")
    machine.does("memory", "add", "I like short answers")
    return machine


@pytest.fixture
def there(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path / "two")
    machine.begin()
    return machine


def test_a_project_moves_with_its_notes_tasks_memory_and_page(
    here: Machine, there: Machine, tmp_path: Path
) -> None:
    file = tmp_path / "project.jsonl"
    told = here.does("export", "--project", ".", str(file))
    assert f"project {here.repo}, 1 session, " in told
    there.state.mkdir(parents=True)
    shutil.copy(here.state / "user.key", there.state)  # both are the same user's

    assert f"Project {there.repo}: 1 session, " in there.does("import", str(file))
    assert [task["title"] for task in there.told("tasks")["tasks"]] == ["Build the login"]
    assert there.told("working")["shown"] == "## Tech Stack\n- Language: Python"
    entries = there.told("memory")["entries"]
    # What holds everywhere is not of the project.
    assert [(e["fact"], e["trust"]) for e in entries] == [("We ship on Fridays", "user-stated")]
    (note,) = there.told("notes")["notes"]
    assert (note["title"], note["tags"]) == ("Tides", ["sea"])
    assert there.does("cat", note["id"]) == "# Tides\nSee [[Moon]] #sea\n"
    found = there.told("search", "zebrafish", "--scope", "project")
    assert found["hits"], found
    assert [s["cwd"] for s in there.told("sessions")["sessions"]] == [str(there.repo)]

    assert "is here already, and identical" in there.does("import", str(file))
    again = tmp_path / "again.jsonl"
    there.does("export", "--project", ".", str(again))
    home = Machine(tmp_path / "three")
    home.begin()
    home.does("import", str(again))
    assert [task["title"] for task in home.told("tasks")["tasks"]] == ["Build the login"]


@pytest.mark.parametrize("by", ["somebody else", "an agent"])
def test_what_the_user_has_not_brought_waits_for_their_word(
    here: Machine, there: Machine, tmp_path: Path, by: str
) -> None:
    file = tmp_path / "project.jsonl"
    here.does("export", "--project", ".", str(file))
    if by == "an agent":  # to which the user's key would do as well
        there.state.mkdir(parents=True)
        shutil.copy(here.state / "user.key", there.state)
    agent = "s" if by == "an agent" else None
    told = there.does("import", str(file), agent=agent)
    assert "1 decision that you have not stated waits for your answer: `foredeck memory`." in told
    (entry,) = there.told("memory")["entries"]
    assert (entry["fact"], entry["state"], entry["trust"], entry["learned_from"]) == (
        *("We ship on Fridays", "proposed", "derived"),
        "import",
    )
    there.does("import", str(file), agent=agent)  # is asked about once
    assert len(there.told("memory")["entries"]) == 1


@pytest.mark.parametrize("by", ["the user", "somebody else"])
def test_a_project_comes_back_from_another_machine(
    here: Machine, there: Machine, tmp_path: Path, by: str
) -> None:
    file, again = tmp_path / "project.jsonl", tmp_path / "again.jsonl"
    here.does("export", "--project", ".", str(file))
    if by == "the user":
        there.state.mkdir(parents=True)
        shutil.copy(here.state / "user.key", there.state)
    there.does("import", str(file))
    there.ingest(ELSEWHERE, "Go on.")
    there.does("export", "--project", ".", str(again))
    assert "2 sessions, " in here.does("import", str(again))
    stated = {entry["fact"]: entry["trust"] for entry in here.told("memory")["entries"]}
    assert stated["We ship on Fridays"] == "user-stated"
    with closing(open_sqlite(here.state / "foredeck.db")) as store:
        # What was here as it is has not come in the file.
        assert [head.id for head in store.query("imported")] == [imported_id(ELSEWHERE)]


def test_a_task_that_went_on_on_both_machines_is_refused(
    here: Machine, there: Machine, tmp_path: Path
) -> None:
    file, again = tmp_path / "project.jsonl", tmp_path / "again.jsonl"
    here.does("export", "--project", ".", str(file))
    there.does("import", str(file))
    for machine, title in ((here, "Build the sign-in"), (there, "Build the sign-on")):
        (task,) = machine.told("tasks")["tasks"]
        machine.does("tasks", "edit", task["id"], "--title", title)
    there.does("export", "--project", ".", str(again))
    told = here.does("import", str(again), code=5)
    assert "has different newer versions" in told
    assert "--as-new" not in told, "which no project takes"
    assert [task["title"] for task in here.told("tasks")["tasks"]] == ["Build the sign-in"]


def test_the_user_may_import_what_an_agent_has_imported(
    here: Machine, there: Machine, tmp_path: Path
) -> None:
    file = tmp_path / "project.jsonl"
    here.does("export", "--project", ".", str(file))
    there.state.mkdir(parents=True)
    shutil.copy(here.state / "user.key", there.state)
    there.does("import", str(file), agent="s")
    there.does("import", str(file))
    (entry,) = there.told("memory")["entries"]
    assert (entry["state"], entry["trust"]) == ("proposed", "derived")


def test_notes_of_another_file_system_at_the_same_path_stay(here: Machine, tmp_path: Path) -> None:
    """As in a store that machines share: who imports the file would refuse it."""
    with closing(open_sqlite(here.state / "foredeck.db")) as store:
        (note,) = store.query("file")
        document = store.get(note.id, FileDocument)
        source = FilesystemSource(filesystemId="other", path=note.fields["source"]["path"])
        document.id, document.source = identity_hash("file", source), source
        document.content = "# Theirs\n"
        store.commit(Batch([document.seal()]))
    file = tmp_path / "project.jsonl"
    here.does("export", "--project", ".", str(file))
    assert "# Tides" in file.read_text()
    assert "# Theirs" not in file.read_text()


def test_a_project_may_be_the_root_of_a_file_system() -> None:
    place = ProjectPlace("1" * 64, "/", "disk", "/")
    assert place.holds({"filesystemId": "disk", "path": "/notes/a.md"})
    assert not ProjectPlace("1" * 64, "/a", "disk", "/a").holds(
        {"filesystemId": "disk", "path": "/ab"}
    )


def test_private_sessions_stay_and_the_page_that_is_there_stays(
    here: Machine, there: Machine, tmp_path: Path
) -> None:
    here.ingest(PRIVATE, "The secret giraffe.")
    with closing(open_sqlite(here.state / "foredeck.db")) as store:
        document = store.get(session_object_id(PRIVATE), SessionDocument)
        document.private = True
        store.commit(Batch([document.seal()]))
    file = tmp_path / "project.jsonl"
    assert "Left out: 1 private session" in here.does("export", "--project", ".", str(file))
    assert "giraffe" not in file.read_text()

    there.does("working", "Tech Stack", "- Language: Rust")
    (there.repo / "notes" / "tides.md").write_text("# Tides here\n")
    there.does("index", "notes")
    assert "The page, notes and decisions that are here already stay" in there.does(
        "import", str(file)
    )
    assert there.told("working")["shown"] == "## Tech Stack\n- Language: Rust"
    assert [note["title"] for note in there.told("notes")["notes"]] == ["Tides here"]
    assert [task["title"] for task in there.told("tasks")["tasks"]] == ["Build the login"]


def test_a_forged_project_brings_nothing(here: Machine, there: Machine, tmp_path: Path) -> None:
    file = tmp_path / "project.jsonl"
    here.does("export", "--project", ".", str(file))
    header, *rest = file.read_text().splitlines(keepends=True)
    other = json.loads(header)
    other["project"]["id"] = "0" * 64
    file.write_text(json.dumps(other) + "\n" + "".join(rest))
    there.does("import", str(file), code=5)
    file.write_text("".join([header, *rest]))
    there.does("import", str(file), "--as-new", code=5)
    assert there.told("sessions")["sessions"] == []
    assert "which session? " in here.does("export", str(file), code=2)
    told = here.does("export", "--project", str(tmp_path), str(tmp_path / "none"), code=4)
    assert "nothing is stored of the project" in told
    assert not (tmp_path / "none").exists()


def test_references_to_the_projects_files_lead_to_them_where_they_are_now(
    home: Path, tmp_path: Path
) -> None:
    lines: list[str] = []
    with closing(open_sqlite(home / "foredeck.db")) as store:
        (head,) = store.query("file", {"source.path": "/repo/src/a.txt"})
        old = ProjectPlace("1" * 64, "/repo", head.fields["source"]["filesystemId"], "/repo")
        export_project(store, old, [STORED], (), lines.append)
        versions = [version.fields["text_hash"] for version in store.history(head.id)]
    new = ProjectPlace("2" * 64, "/home/me/repo", "other", "/srv/repo")
    with closing(open_sqlite(tmp_path / "other.db")) as store:
        done = import_file(store, lines, into=new)
        assert (done.project, done.left_out) == (new, ())
        (moved,) = store.query("file", {"source.path": "/srv/repo/src/a.txt"})
        assert [version.fields["text_hash"] for version in store.history(moved.id)] == versions
        assert store.get(session_object_id(STORED), SessionDocument).cwd == "/home/me/repo"
        (read,) = store.query("toolcall", {"tool": "read"})
        reference = read.fields["file_version_ref"]
        assert reference["object"] == moved.id
        hashes = {version.fields["content_hash"] for version in store.history(moved.id)}
        assert reference["content_hash"] in hashes
        assert import_file(store, lines, into=new).new_documents == 0
