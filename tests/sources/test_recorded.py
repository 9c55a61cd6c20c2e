"""Replay: files as the recorded results tell of them, without a disk."""

from __future__ import annotations

from typing import Any

import pytest

from foredeck.model.documents import Document, FileDocument
from foredeck.sources.filesystem import FilesystemMap
from foredeck.sources.recorded import FileSource
from foredeck.sources.snapshots import FileSnapshot, ToolEvent
from foredeck.store.protocol import Batch
from foredeck.store.store import Store

FILE = "".join(f"line {n}\n" for n in range(1, 6))


class Replay:
    """Feeds recorded results to a source and commits what follows."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.source = FileSource(store, FilesystemMap("box", cwd="/no/such/repo"))

    def __call__(self, tool: str, text: str = "", *, error: bool = False, **arguments: Any) -> Any:
        event = ToolEvent(tool, arguments, text, is_error=error, cwd="/no/such/repo")
        snapshots = self.source.after_tool(event)
        documents: list[Document] = [s.document for s in snapshots if s.document]
        if documents:
            self.store.commit(Batch(puts=documents))
        return snapshots

    def file(self, path: str) -> FileDocument | None:
        return self.store.get(self.source.identify(path)[0], FileDocument)

    def content(self, path: str) -> str | None:
        document = self.file(path)
        return document.content


@pytest.fixture
def replay(store: Store) -> Replay:
    return Replay(store)


def states(snapshots: list[FileSnapshot]) -> list[tuple[str, str, bool]]:
    return [(s.path, s.state, s.document is not None) for s in snapshots]


def test_a_part_of_an_unknown_file_only_says_that_it_is_there(replay: Replay) -> None:
    text = "line 1\nline 2\n\n[4 more lines in file. Use offset=3 to continue.]"
    assert states(replay("read", text, path="a", limit=2)) == [("/no/such/repo/a", "listed", True)]
    assert replay.content("a") is None
    assert states(replay("read", "line 3", path="a", offset=3)) == [
        ("/no/such/repo/a", "listed", False)
    ]
    replay("read", FILE, path="a")
    assert replay.content("a") == FILE
    replay("read", text, path="a", limit=2)
    assert replay.content("a") == FILE


@pytest.mark.parametrize("old", ["not there", "line", ""])
def test_an_edit_that_does_not_fit_what_is_known_invents_nothing(replay: Replay, old: str) -> None:
    replay("write", "ok", path="a", content=FILE)
    assert states(replay("edit", "ok", path="a", oldText=old, newText="x")) == [
        ("/no/such/repo/a", "text", False)
    ]


def test_failures_say_nothing(replay: Replay) -> None:
    assert replay("write", "EACCES", error=True, path="a", content="x") == []
    assert replay("read", "ENOENT", error=True, path="a") == []
    replay("write", "ok", path="a", content="one")
    assert states(replay("edit", "no", error=True, path="a", oldText="one", newText="two")) == [
        ("/no/such/repo/a", "text", False)
    ]


@pytest.mark.parametrize("text", ["a\0b", "\ufffd" * 9 + "PNG", "Read image file [image/png]"])
def test_what_was_binary_has_no_content(replay: Replay, text: str) -> None:
    assert states(replay("read", text, path="a")) == [("/no/such/repo/a", "binary", True)]
    assert replay.content("a") is None
    assert states(replay("read", text, path="a")) == [("/no/such/repo/a", "binary", False)]


def test_text_may_hold_a_replacement_character(replay: Replay) -> None:
    text = "about \ufffd in a longer line of text\n"
    replay("read", text, path="a")
    assert replay.content("a") == text


def test_listings_make_objects_once_and_hide_nothing(replay: Replay) -> None:
    replay("write", "ok", path="src/a", content=FILE)
    assert states(replay("ls", "a\nb\nlib/", path="src")) == [
        ("/no/such/repo/src/a", "text", False),
        ("/no/such/repo/src/b", "listed", True),
    ]
    assert states(replay("grep", "b:1: x", pattern="x", path="src")) == [
        ("/no/such/repo/src/b", "listed", False)
    ]
    assert replay.content("src/a") == FILE
