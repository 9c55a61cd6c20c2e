"""Pruning: which messages lose their text, and that everything else works without it."""

from __future__ import annotations

import json
import time
from contextlib import closing
from pathlib import Path

import pytest

from cli.test_forget_command import wait_until_delivered
from commands import Foredeck
from context.driver import START_MS, Host
from context.messages import assistant, calls, lines, result
from context.scenes import ask, bash, finish, go_on
from context.test_compacting import compact
from foredeck.cli.main import main
from foredeck.config import Config
from foredeck.hosts.protocol import SessionEventParams
from foredeck.model.messages import load_message
from foredeck.model.records import ARCHIVED, ArchivedDocument, archived_id
from foredeck.model.tasks import TaskDocument, TaskLink
from foredeck.store.place import open_store
from foredeck.store.protocol import Batch
from foredeck.store.sessions import stored_messages
from foredeck_bench.crash.stores import prepared
from foredeck_xtdb.link import open_database
from foredeck_xtdb.local_copy import open_copy, remote_of
from store.xtdb_node import installed_home

# A summary quotes the beginning of what was said, and the ends of what was answered.
ASKED = "Make the parser faster. " + "It dawdles over every list. " * 60 + "Ask the kumquat. "
ANSWERED = "Done. " + "It is linear. " * 60 + "It was the tangerine. " + "It is linear. " * 60
OUTPUT = lines(30, "output of the profiler")


def converse(home: Path, session: str = "first", *, taken_back: str = "", **settings: str) -> None:
    """A session whose first turns were compacted long ago, and maybe brought back after that, with
    the engine told of it or not; its engine has ended."""
    host = Host(home, session=session, **settings).begin(ASKED)
    host.add(assistant(calls(f"{session}-r", "read", path="a.py")))
    host.add(result(f"{session}-r", "read", OUTPUT))
    host.call()
    bash(host, f"{session}-c")
    go_on(host, "Now the tests of the parser.", answer=ANSWERED)
    finish(host, "They pass.")
    answer = compact(host)
    assert answer["action"] == "summary"
    summary, sent, entries = str(answer["summary"]), list(host.messages), list(host.entries)
    host.compact(summary, 2)
    if taken_back == "told":
        host.engine.session_event(
            SessionEventParams(session=session, kind="uncompact", summary=summary)
        )
    if taken_back:
        host.messages, host.entries = sent, entries
    ask(host, "And the documentation?")
    host.close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    converse(tmp_path / "home")
    return tmp_path / "home"


def pruned(home: Path, foredeck: Foredeck, *more: str) -> dict[str, int]:
    """What pruning the only session with a plan says of it."""
    (told,) = foredeck.json(home, "forget", "--texts", "--yes", *more)["sessions"]
    return {name: value for name, value in told.items() if name != "session"}


def bytes_in(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_messages_lose_their_text_and_keep_their_entry(home: Path, foredeck: Foredeck) -> None:
    before = foredeck.json(home, "show", "first", "--call", "2")
    assert ASKED in str(before)
    told = pruned(home, foredeck)
    assert told["messages"] >= 4
    assert told["bytes"] > 1000
    after = foredeck.json(home, "show", "first", "--call", "2")
    text = str(after)
    assert "kumquat" not in text
    assert ARCHIVED in text
    # What the model was shown of a result is still all there, and so is the summary.
    assert "output of the profiler 3" in text
    assert [m["role"] for m in after["messages"]] == [m["role"] for m in before["messages"]]
    chat = foredeck(home, "cat", "chat:first")
    assert "kumquat" not in chat
    assert "tangerine" not in chat
    assert ARCHIVED in chat
    assert "They pass." in chat
    # What is left of the first prompt is no title, and what is gone was not "never seen".
    (session,) = foredeck.json(home, "sessions")["sessions"]
    assert session["title"] == ARCHIVED
    traced = foredeck(home, "trace", "kumquat", "first")
    assert "was pruned, and is not looked through" in traced
    assert json.loads(foredeck(home, "trace", "kumquat", "first", "--json"))["archived"] > 0


@pytest.mark.parametrize("how", ["told", "while no engine was there, or by /tree"])
def test_what_was_brought_back_into_the_chat_stays(
    tmp_path: Path, foredeck: Foredeck, how: str
) -> None:
    home = tmp_path / "home"
    converse(home, taken_back=how)
    assert pruned(home, foredeck)["messages"] == 0
    assert "kumquat" in foredeck(home, "cat", "chat:first")


def test_the_text_is_gone_from_the_file(home: Path, foredeck: Foredeck) -> None:
    with closing(open_store(Config(home=home), notify=lambda *_: None)) as store:
        (turn,) = [
            t for t in store.query("turn", {"session": "first"}) if t.fields["user_turn"] == 1
        ][:1]
        address = turn.fields["user"]
        (data,) = store.blobs([address]).values()
    assert pruned(home, foredeck)["messages"]
    with closing(open_store(Config(home=home), notify=lambda *_: None)) as store:
        assert store.blobs([address]) == {}
        stub = load_message(address, store.blob)
        assert stub["content"] == ARCHIVED or stub["content"][0]["text"] == ARCHIVED
        assert stub["timestamp"] < START_MS + 1000
        record = store.get(archived_id("first"), ArchivedDocument)
        assert address in record.messages
        # Which calls a message has asked for can still be told: rewinding goes by it.
        left = stored_messages(store, record.messages)
        assert left.keys() == record.messages.keys()
        assert any(b'"first-r"' in message for message in left.values())
    assert data not in bytes_in(home)


def test_it_is_still_found_by_its_words(home: Path, foredeck: Foredeck) -> None:
    found = foredeck.json(home, "search", "kumquat")
    assert "kumquat" in found["hits"][0]["snippet"]
    message = found["hits"][0]["message"]
    assert pruned(home, foredeck)["messages"]
    found = foredeck.json(home, "search", "kumquat")
    best = found["hits"][0]
    assert (best["message"], best["snippet"]) == (message, ARCHIVED)
    assert pruned(home, foredeck)["messages"] == 0


def test_a_dry_run_takes_nothing(home: Path, foredeck: Foredeck) -> None:
    before = bytes_in(home)
    assert "messages would lose their text" in foredeck(home, "forget", "--texts", "--dry-run")
    assert bytes_in(home) == before


def test_without_a_yes_nothing_goes(
    home: Path, foredeck: Foredeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", open("/dev/null"))  # noqa: PTH123, SIM115
    assert "--yes" in foredeck(home, "forget", "--texts", code=2)
    assert "kumquat" in foredeck(home, "cat", "chat:first")


def test_what_is_young_or_uncovered_stays(home: Path, foredeck: Foredeck) -> None:
    days = str((int(time.time() * 1000) - START_MS) // 86_400_000 + 1)
    told = pruned(home, foredeck, "--days", days)
    assert (told["messages"], told["uncovered"]) == (0, 0)
    assert told["young"] > 4
    told = pruned(home, foredeck)
    assert told["uncovered"] >= 2  # what was said after the compaction, and its last messages
    assert "They pass." in foredeck(home, "cat", "chat:first")


@pytest.mark.parametrize("object", ["chat:first", "first-r"])
def test_what_an_open_task_is_linked_to_stays(home: Path, object: str, foredeck: Foredeck) -> None:
    task = TaskDocument(
        id="01900000-0000-7000-8000-000000000001",
        project="p",
        title="Faster parser",
        created_ms=START_MS,
        updated_ms=START_MS,
        links=[TaskLink(object=object)],
        provenance={"origin": "first", "generator": "agent"},  # type: ignore[arg-type]
    )
    with closing(open_store(Config(home=home), notify=lambda *_: None)) as store:
        store.commit(Batch(puts=[task.seal()]))
    told = pruned(home, foredeck, "--dry-run")
    assert told["linked"] >= 1
    task.status = "closed"
    with closing(open_store(Config(home=home), notify=lambda *_: None)) as store:
        store.commit(Batch(puts=[task.seal()]))
    assert pruned(home, foredeck)["messages"] > told["messages"]


def test_a_text_that_another_session_holds_stays(home: Path, foredeck: Foredeck) -> None:
    host = Host(home, session="second").begin(ASKED)
    go_on(host)
    host.close()
    foredeck(home, "forget", "--texts", "--yes")
    assert "kumquat" in foredeck(home, "cat", "chat:second")


def test_a_pruned_session_can_be_taken_up(home: Path, foredeck: Foredeck) -> None:
    assert pruned(home, foredeck)["messages"]
    host = Host(home, session="first")
    sent = ask(host, "What was that about?")
    assert sent.text(len(sent.messages) - 1).endswith("What was that about?")
    host.close()


def test_it_is_exported_imported_and_forgotten(
    home: Path, tmp_path: Path, foredeck: Foredeck
) -> None:
    assert pruned(home, foredeck)["messages"]
    chat = foredeck(home, "cat", "chat:first")
    file, other = str(tmp_path / "session.jsonl"), tmp_path / "other"
    foredeck(home, "export", "first", file)
    foredeck(other, "import", file)
    assert foredeck(other, "cat", "chat:first") == chat
    foredeck(other, "import", file, "--as-new")
    with closing(open_store(Config(home=other), notify=lambda *_: None)) as store:
        assert len(store.query("archived")) == 2
    foredeck(home, "forget", "first", "--yes")
    with closing(open_store(Config(home=home), notify=lambda *_: None)) as store:
        assert store.query("archived") == []


def test_an_export_that_lacks_a_text_is_still_refused(
    home: Path, tmp_path: Path, foredeck: Foredeck
) -> None:
    assert pruned(home, foredeck)["messages"]
    file = tmp_path / "session.jsonl"
    foredeck(home, "export", "first", file)
    kept = [line for line in file.read_text().splitlines() if '"archived:first"' not in line]
    file.write_text("\n".join(kept) + "\n")
    assert main(["import", str(file), "--home", str(tmp_path / "other")]) != 0


@pytest.mark.usefixtures("runtime")
def test_the_text_goes_from_xtdb_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, foredeck: Foredeck
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("FOREDECK_STORE", "xtdb")
    config = Config(home=home, store="xtdb")
    with prepared(home, "xtdb", installed_home()):
        converse(home, store="xtdb")
        with closing(open_copy(config)) as store:
            remote_of(store).start()
            wait_until_delivered(store)
        assert pruned(home, foredeck)["messages"] >= 4
        with closing(open_copy(config)) as store:
            remote_of(store).start()
            wait_until_delivered(store)
            record = store.get(archived_id("first"), ArchivedDocument)
        gone = [*record.messages, *record.texts]
        with closing(open_database(config)) as database:
            assert database.blobs(gone) == {}
            assert database.history(archived_id("first"))
        assert "kumquat" not in foredeck(home, "cat", "chat:first")
        assert main(["doctor", "--home", str(home)]) in (0, 1)
