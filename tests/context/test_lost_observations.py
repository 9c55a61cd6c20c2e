"""An engine that ended before it had looked at a file: the next one goes by what the tool said."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context.driver import Host
from context.messages import lines
from context.scenes import ask, go_on
from context.sent import Sent, as_bytes
from context.working import Work
from examples import examples
from foredeck.model.documents import FileDocument

OLD = lines(30, "old")
NEW = OLD.replace("old 7:", "new 7:")


@contextmanager
def working(home: Path, folder: Path, session: str = "s") -> Iterator[Work]:
    """An agent in a folder, with a store of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    host = Host(home, session=session, cwd=str(folder.resolve()), disk=True)
    try:
        ask(host)
        yield Work(host)
    finally:
        host.close()


def contents(work: Work, name: str) -> list[str | None]:
    """Contents of all versions of a file, the oldest first."""
    id, _ = work.host.state.objects.source.identify(str(work.folder / name))
    store = work.host.store
    documents = [store.get(id, FileDocument, head.token) for head in store.history(id)]
    return [document.content for document in documents if document is not None]


def version(work: Work, name: str) -> int:
    """The number of the newest version that the session has met."""
    id, _ = work.host.state.objects.source.identify(str(work.folder / name))
    index = work.host.state.objects.index
    return index.entries[index.by_object[id]].newest.version


def test_an_edit_in_the_same_message_makes_the_second_version(tmp_path: Path) -> None:
    edit = {"path": "a.py", "edits": [{"oldText": "old 7:", "newText": "new 7:"}]}
    with working(tmp_path / "home", tmp_path / "repo") as work:
        work.file("a.py", NEW)
        work.lose(("read", OLD, {"path": "a.py"}), ("edit", "Done.", edit))
        sent = work.host.call()
        assert (contents(work, "a.py"), version(work, "a.py")) == ([OLD, NEW], 2)
        assert "[foredeck]" not in as_bytes(sent.prompt)


def test_what_somebody_else_did_since_gets_a_notice(tmp_path: Path) -> None:
    with working(tmp_path / "home", tmp_path / "repo") as work:
        work.file("a.py", NEW)
        work.lose(("read", OLD, {"path": "a.py"}))
        work.host.call()
        work.notice_changes()
        assert (contents(work, "a.py"), version(work, "a.py")) == ([OLD, NEW], 2)
        assert "a.py changed on disk" in go_on(work.host).text(4)


def test_a_written_file_that_was_deleted_since_has_both_versions(tmp_path: Path) -> None:
    with working(tmp_path / "home", tmp_path / "repo") as work:
        work.lose(("write", "Wrote it.", {"path": "a.py", "content": OLD}))
        work.host.call()
        work.notice_changes()
        assert (contents(work, "a.py"), version(work, "a.py")) == ([OLD, None], 2)


@pytest.mark.parametrize(
    ("said", "arguments"),
    [
        (OLD[:50] + "\n\n[28 more lines in file. Use offset=3 to continue.]", {}),
        ("old 3: some\nold 4: some", {"offset": "3"}),
        ("caf\ufffd", {}),
        ("PNG\0\ufffd\ufffd", {}),
        ("\ud800", {}),
    ],
    ids=["cut", "a part", "not UTF-8", "binary", "a lone surrogate"],
)
def test_what_is_not_the_whole_text_makes_no_version(
    tmp_path: Path, said: str, arguments: dict[str, str]
) -> None:
    with working(tmp_path / "home", tmp_path / "repo") as work:
        work.file("a.py", NEW)
        work.lose(("read", said, {"path": "a.py", **arguments}))
        work.host.call()
        assert contents(work, "a.py") == [NEW]


@pytest.mark.parametrize("text", ["", "one\r\ntwo\r\n", "\ufeffbom\n", "no end", "é\n"])
def test_unchanged_bytes_are_what_the_disk_says(tmp_path: Path, text: str) -> None:
    with working(tmp_path / "home", tmp_path / "repo") as work:
        work.file("a.py", "").write_bytes(text.encode())
        work.lose(("read", text, {"path": "a.py"}))
        work.host.call()
        id, _ = work.host.state.objects.source.identify(str(work.folder / "a.py"))
        document = work.host.store.get(id, FileDocument)
        assert (document.content, document.provenance.origin) == (text, "disk")


STEPS: dict[str, Callable[[Work, bool], Sent]] = {
    "read": lambda work, lost: step(work, lost, "read", "", path="a.py"),
    "read part": lambda work, lost: step(work, lost, "read", "", path="a.py", offset=3, limit=9),
    "write": lambda work, lost: step(work, lost, "write", OLD, path="a.py", content=OLD),
    "write other": lambda work, lost: step(work, lost, "write", NEW, path="a.py", content=NEW),
    "run": lambda work, lost: step(work, lost, "bash", NEW * 2, command="make a.py"),
}


def step(work: Work, lost: bool, tool: str, after: str, /, **arguments: object) -> Sent:
    """A tool that may leave `a.py` with another text; with its observation lost or not."""
    if tool == "read":
        text = (work.folder / "a.py").read_text().split("\n")
        first = int(str(arguments.get("offset", 1))) - 1
        output = "\n".join(text[first : first + int(str(arguments.get("limit", 9999)))])
    else:
        work.file("a.py", after)
        output = f"{tool} has run"
    if not lost:
        return work.run(tool, output, **arguments)
    work.lose((tool, output, arguments))
    return work.host.call()


@settings(max_examples=examples(30))
@given(script=st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.booleans()), max_size=5))
def test_a_lost_observation_changes_no_prompt(script: list[tuple[str, bool]]) -> None:
    with TemporaryDirectory() as name:
        calm = play(Path(name), "calm", [(tool, False) for tool, _ in script])
        assert play(Path(name), "killed", script) == calm


def play(folder: Path, session: str, script: list[tuple[str, bool]]) -> list[object]:
    """The prompts of a session; all sessions have the same files and one store."""
    with working(folder / "home", folder / "repo", session) as work:
        work.file("a.py", OLD)
        return [comparable(STEPS[tool](work, lost)) for tool, lost in script]


def comparable(sent: Sent) -> list[tuple[str, str]]:
    return [(message["role"], sent.text(n)) for n, message in enumerate(sent.messages)]
