"""What a history shows of files has versions: `history`, `blame` and `search` find them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from written_histories import SESSION, START_MS, ClaudeCode, said, use, write_lines

from commands import Foredeck
from foredeck.names import find_object
from foredeck.store.store import Store
from foredeck.timeline.blame import text_of_version
from foredeck_agents.histories.ingesting import ingest_files
from replay.recordings import Recording
from replay.recordings import call as pi_call

Version = tuple[str, str, str | None]

REMINDER = "\n\n<system-reminder>\nMind the gap.\n</system-reminder>\n"
NOTE = "---\nkind: note\n---\n# B\n\n[[c.py]]\n"
FORKED = "5e551011-0000-4000-8000-000000000002"


def numbered(*lines: str, arrow: str = "→") -> list[dict[str, Any]]:
    return [said("\n".join(f"{n:>6}{arrow}{line}" for n, line in enumerate(lines, 1)) + REMINDER)]


def history_of_files(repo: str, session: str = SESSION, mark: str = "") -> ClaudeCode:
    """A read and two edits of src/a.py, side by side; a write; reads and edits that tell nothing
    of the whole; an edit of which the history has the file as it was."""
    history = ClaudeCode(session, cwd=repo)
    a, b, c = f"{repo}/src/a.py", f"{repo}/b.md", f"{repo}/c.py"
    history.user("Work on it.")
    history.answer("m1", use(f"r1{mark}", "Read", file_path=a))
    history.result(f"r1{mark}", numbered("one", "two", "two", "three", ""))
    edit = {"file_path": a, "replace_all": False}
    history.answer(
        "m2",
        use(f"e1{mark}", "Edit", **edit, old_string="one", new_string="1"),
        use(f"e2{mark}", "Edit", **{**edit, "replace_all": True}, old_string="two", new_string="2"),
        use(f"e3{mark}", "Edit", **edit, old_string="nowhere", new_string="else"),
    )
    for call in ("e1", "e2"):
        history.result(f"{call}{mark}", "The file has been updated.")
    history.result(f"e3{mark}", "String to replace not found", failed=True)
    history.answer("m3", use(f"w1{mark}", "Write", file_path=b, content=NOTE))
    history.result(f"w1{mark}", "File created successfully")
    history.answer(
        "m4",
        use(f"r2{mark}", "Read", file_path=c, limit=2),
        use(f"e4{mark}", "Edit", file_path=c, old_string="x = 1", new_string="x = 2"),
    )
    history.result(f"r2{mark}", numbered("x = 1", "y = 1"))
    history.result(f"e4{mark}", "The file has been updated.")
    history.answer("m5", use(f"e5{mark}", "Edit", file_path=c, old_string="y = 1", new_string="y"))
    before = {"originalFile": "x = 2\ny = 1\nz = 1\n", "filePath": c}
    history.result(f"e5{mark}", "The file has been updated.", toolUseResult=before)
    history.answer("m6", said("Done."), stop_reason="end_turn")
    return history


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "state"


def versions(store: Store, path: str, session: str = SESSION) -> list[Version]:
    """Text, who made it, and the call that did."""
    found = find_object(store, path, session)
    texts = [text_of_version(store, head) for head in store.history(found.id)]
    provenances = [head.fields["provenance"] for head in store.history(found.id)]
    made = [(p["generator"], p.get("tool_call")) for p in provenances]
    return [(text, *by) for text, by in zip(texts, made, strict=True)]


A = [
    ("one\ntwo\ntwo\nthree\n", "system", None),
    ("1\ntwo\ntwo\nthree\n", "agent", "e1"),
    ("1\n2\n2\nthree\n", "agent", "e2"),
]
C = [("x = 2\ny = 1\nz = 1\n", "system", None), ("x = 2\ny\nz = 1\n", "agent", "e5")]


def check(store: Store) -> None:
    assert versions(store, "/repo/src/a.py") == A
    assert versions(store, "/repo/b.md") == [(NOTE, "agent", "w1")]
    assert versions(store, "/repo/c.py") == C


def test_reads_writes_and_edits_give_versions(tmp_path: Path, store: Store) -> None:
    ingest_files(store, [write_lines(tmp_path / "a.jsonl", history_of_files("/repo").lines)])
    check(store)
    at = [head.fields["provenance"]["at_ms"] for head in store.history(_id(store, "src/a.py"))]
    assert at == [START_MS + second * 1000 for second in (2, 6, 7)]


@pytest.mark.parametrize("cut", range(2, 16))
def test_wherever_a_history_was_cut_its_versions_are_the_same(
    tmp_path: Path, store: Store, cut: int
) -> None:
    lines = history_of_files("/repo").lines
    for read in (lines[:cut], lines):
        ingest_files(store, [write_lines(tmp_path / "a.jsonl", read)])
    check(store)


def _id(store: Store, path: str) -> str:
    return find_object(store, path).id


def test_the_command_line_finds_them_beside_the_file_itself(
    tmp_path: Path, home: Path, store: Store, foredeck: Foredeck
) -> None:
    """A fork's copies of its parent's calls count once; what lies on the disk comes last."""
    repo = tmp_path / "repo"
    path = repo / "src" / "a.py"
    for session, name in ((SESSION, "a"), (FORKED, "b")):
        history = history_of_files(str(repo), session)
        ingest_files(store, [write_lines(tmp_path / f"{name}.jsonl", history.lines)])
    lines = foredeck.json(home, "blame", path)["lines"]
    by_call = [(line["text"], line["tool_call"]) for line in lines]
    assert by_call == [("1", "e1"), ("2", "e2"), ("2", "e2"), ("three", None)]
    assert lines[0]["session"] == SESSION
    assert (lines[0]["call"], lines[0]["time_ms"]) == (None, START_MS + 6000)

    path.parent.mkdir(parents=True)
    path.write_text("1\n2\n2\nfour\n")
    foredeck(home, "index", path)
    lines = foredeck.json(home, "blame", path)["lines"]
    assert [line["by"] for line in lines] == ["agent", "agent", "agent", "person"]
    listed = foredeck.json(home, "history", path)
    assert listed["source"]["type"] == "filesystem"
    origins = [version["provenance"]["origin"].split("/")[-1] for version in listed["versions"]]
    assert origins == ["a.jsonl"] * 3 + ["b.jsonl"] * 3 + ["disk"]
    told = foredeck.json(home, "history", path, "--session", SESSION)
    assert told["source"] == {"type": "history", "session": SESSION, "path": str(path)}
    assert "line 1 of" in (said := foredeck(home, "blame", f"{path}:1", "--prompt", code=4))
    assert "has no prompt: 5e551011-0000 a call Edit" in said


def test_search_finds_them_by_type_and_a_read_and_its_file_once(
    tmp_path: Path, home: Path, store: Store, foredeck: Foredeck
) -> None:
    ingest_files(store, [write_lines(tmp_path / "a.jsonl", history_of_files("/repo").lines)])
    hits = foredeck.json(home, "search", "three", "--type", "file")["hits"]
    assert [hit["path"] for hit in hits] == ["/repo/src/a.py"]
    assert foredeck.json(home, "cat", hits[0]["object"])["content"]
    assert len(foredeck.json(home, "search", "three")["hits"]) == 1


def test_they_are_no_notes(tmp_path: Path, home: Path, store: Store, foredeck: Foredeck) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "b.md").write_text(NOTE)
    foredeck(home, "index", repo / "b.md")
    lines = history_of_files(str(repo)).lines
    ingest_files(store, [write_lines(tmp_path / "a.jsonl", lines)])
    assert len(foredeck.json(home, "notes")["notes"]) == 1


def test_they_are_forgotten_exported_and_imported_with_their_session(
    tmp_path: Path, home: Path, store: Store, foredeck: Foredeck
) -> None:
    ingest_files(store, [write_lines(tmp_path / "a.jsonl", history_of_files("/repo").lines)])
    bundle = tmp_path / "bundle.jsonl"
    for command in (["export", SESSION, str(bundle)], ["forget", SESSION, "--yes"]):
        foredeck(home, *command)
    assert store.query("file") == []
    foredeck(home, "import", bundle)
    check(store)


def test_files_that_scripts_of_pi_have_written_have_versions(tmp_path: Path, store: Store) -> None:
    """Pi notes what a script calls, not what that answers: a read shows nothing of its file."""

    def nested(number: int, name: str, status: str = "ok", **arguments: Any) -> dict[str, Any]:
        return {"id": f"s1/{number}", "name": name, "status": status, "arguments": arguments}

    edit = {"path": "a.py", "edits": [{"oldText": "two", "newText": "2"}]}
    ran = [
        nested(1, "write", path="a.py", content="one\ntwo\n"),
        nested(2, "edit", **edit),
        nested(3, "read", path="b.py"),
        nested(4, "write", "error", path="c.py", content="never"),
        nested(5, "bash", command="rm c.py"),
    ]
    history = Recording()
    history.assistant(pi_call("s1", "codemode", code="..."), stop="toolUse")
    nested_calls = {"calls": ran, "complete": True}
    history.result("s1", "codemode", said("Script completed"), nestedCalls=nested_calls)
    ingest_files(store, [history.write(tmp_path / "a.jsonl")])
    assert [text for text, *_ in versions(store, "/repo/a.py")] == ["one\ntwo\n", "one\n2\n"]
    assert {name for _, _, name in versions(store, "/repo/a.py")} == {"s1"}
    assert [head.fields["source"]["path"] for head in store.query("file")] == ["/repo/a.py"]


def test_a_write_over_a_file_is_its_agents_only_where_it_differs(
    tmp_path: Path, store: Store
) -> None:
    history = ClaudeCode(cwd="/repo")
    history.answer("m1", use("w1", "Write", file_path="/repo/a.py", content="one\n2\n"))
    history.result("w1", "Updated.", toolUseResult={"originalFile": "one\ntwo\n"})
    ingest_files(store, [write_lines(tmp_path / "a.jsonl", history.lines)])
    made = [("one\ntwo\n", "system", None), ("one\n2\n", "agent", "w1")]
    assert versions(store, "/repo/a.py") == made
