"""A text put out of everything: versions, messages, prompts, index and memory; and nothing else."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from context.driver import Host
from context.messages import lines
from context.scenes import ask, bash, go_on, use
from foredeck.cli.main import main
from foredeck.config import Config
from foredeck.derived.follower import Follower
from foredeck.errors import Conflict, StoreUnavailable
from foredeck.memory.keeping import Memory, NewMemory
from foredeck.memory.sections import day
from foredeck.memory.trust import load_user
from foredeck.memory.user_acts import UserActs
from foredeck.model.documents import SystemPromptDocument
from foredeck.model.kinds import kind_of
from foredeck.model.observations import ObservationDocument, ReflectionDocument, Remark
from foredeck.model.records import by_foredeck
from foredeck.store import purging
from foredeck.store.place import PENDING_PURGE, open_store
from foredeck.store.portable.export import export_session
from foredeck.store.protocol import Batch
from foredeck.store.purging import finish_pending
from foredeck.store.references import in_message, references
from foredeck.store.sessions import documents_of
from foredeck.store.store import Store, open_sqlite
from purged import Purged, home, purge

__all__ = ["home", "purge"]

SECRET = "sk-live-51H8xQ"


@pytest.fixture
def host(home: Path) -> Host:
    """A session in which the secret stands wherever it can, and another without it."""
    other = Host(home, session="other").begin()
    bash(other, "o1")
    other.close()
    host = Host(home, session="s").begin(f"My key is {SECRET}, keep it.")
    bash(host, "b1", lines(40, f"key={SECRET}"))
    use(host, "w1", "write", "ok", path="/repo/key.txt", content=lines(30, SECRET))
    use(host, "b2", "bash", f'{{"token": "{SECRET}"}}', command=f"curl -H '{SECRET}'")
    for number in range(4):
        go_on(host, f"Turn {number}", answer=f"Done with {SECRET}.")
    host.close()
    return host


@pytest.fixture
def store(home: Path, host: Host) -> Iterator[Store]:
    del host
    with closing(open_sqlite(home / "foredeck.db")) as opened:
        yield opened


def everything(store: Store) -> dict[str, Any]:
    """All versions and all blobs that they name, each of which fits its hash."""
    found: dict[str, Any] = {}
    for change in store.changes_since(None, limit=10**6):
        document = store.get(change.id, kind_of(change.type), change.token)
        body = document.model_dump()
        found[f"{change.id} {change.token}"] = json.dumps(body, sort_keys=True)
        named = references(change.type, {**body, "content": None})
        messages = store.blobs(named.messages)
        assert messages.keys() == named.messages
        inner = {digest for data in messages.values() for digest in in_message(data)}
        leaves = store.blobs(named.needed | inner)
        assert leaves.keys() == named.needed | inner
        found |= messages | leaves | store.blobs(named.possible)
    return found


def holds(found: dict[str, Any], text: str) -> list[str]:
    """What of it holds a text."""
    return [
        key
        for key, value in found.items()
        if text in key or (text.encode() in value if isinstance(value, bytes) else text in value)
    ]


def test_a_dry_run_says_what_would_change_and_changes_nothing(store: Store, purge: Purged) -> None:
    before = everything(store)
    told = purge("--text", SECRET, "--dry-run")

    assert told["purged"] is False
    assert told["sessions"] == ["s"]
    assert {"call", "toolcall", "turn", "file"} <= told["versions"].keys()
    assert everything(store) == before


def test_it_is_gone_from_everything_and_all_else_is_as_it_was(
    home: Path, store: Store, purge: Purged, capsys: pytest.CaptureFixture[str]
) -> None:
    before = everything(store)
    assert holds(before, SECRET)
    assert main(["search", SECRET]) == 0
    assert SECRET in capsys.readouterr().out
    assert purge("--text", SECRET)["purged"]

    after = everything(store)
    assert holds(after, SECRET) == []
    assert holds(after, "[purged]")
    assert len([key for key in after if " " in key]) == len([key for key in before if " " in key])
    ours = set(documents_of(store, "other"))
    same = {key: value for key, value in before.items() if key.partition(" ")[0] in ours}
    assert same.items() <= after.items()
    for file in home.rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes()
    assert main(["search", SECRET]) == 0
    assert SECRET not in capsys.readouterr().out
    assert main(["show", "s", "--call", "3"]) == 0
    assert "[purged]" in capsys.readouterr().out


def test_what_is_left_can_be_exported_and_gone_on_with(
    home: Path, host: Host, store: Store, purge: Purged
) -> None:
    purge("--text", SECRET)
    written: list[str] = []
    export_session(store, "s", written.append)
    assert SECRET not in "".join(written)

    again = Host(home, session="s", checked=False)
    again.messages, again.entries = list(host.messages), list(host.entries)
    again.plan = host.plan
    assert ask(again, "Are you there?").call is not None
    again.close()


def test_an_object_goes_with_its_text_wherever_that_stands(store: Store, purge: Purged) -> None:
    purge("b1")
    after = everything(store)
    document = store.get("b1", kind_of("toolcall"))

    assert document.content == "[purged]"
    assert holds(after, f"key={SECRET}") == []
    assert holds(after, f"My key is {SECRET}")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "purge what?"),
        (["--text", "x"], 2, "too short"),
        (["--text", "assistant", "--yes"], 2, "remove 'assistant' from every message"),
        (["--regex", "("], 2, "is not a regular expression"),
        (["--text", SECRET], 2, "confirm with --yes"),
        (["m-none"], 4, "no entry"),
    ],
)
def test_refusals(
    store: Store, arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = everything(store)
    assert main(["purge", *arguments]) == code
    assert said in capsys.readouterr().err
    assert everything(store) == before


def test_without_a_yes_the_store_is_not_searched(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def search(*_: object) -> None:
        pytest.fail("this takes a minute in a large store")

    monkeypatch.setattr("foredeck.cli.purge_command._look_for_matches", search)
    before = everything(store)
    assert main(["purge", "--regex", SECRET]) == 2
    assert "confirm with --yes" in capsys.readouterr().err
    assert everything(store) == before


def test_a_purge_that_others_interrupt_twice_loses_nothing(
    home: Path, store: Store, purge: Purged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Taken out, not committed again, and written to by somebody else when it is finished."""

    def refused(*_arguments: object, **_more: object) -> None:
        raise Conflict("written to meanwhile")

    for where in ("_commit_again", "erase_from"):
        with monkeypatch.context() as patched:
            patched.setattr(purging, where, refused)
            assert main(["purge", *(["--text", SECRET, "--yes"] if where[0] == "_" else [])]) != 0
        assert (home / PENDING_PURGE).exists()
    assert main(["purge"]) == 0
    assert holds(everything(store), SECRET) == []
    assert purge("--text", SECRET)["documents"] == 0


@pytest.mark.parametrize("step", ["erase", "commit"])
def test_an_interrupted_purge_is_finished_by_the_next(
    home: Path, store: Store, purge: Purged, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """As if the process were killed before, and after, what holds the text is taken out."""

    class KilledError(Exception):
        pass

    def killed(*_arguments: object, **_more: object) -> None:
        raise KilledError

    with Follower(store, "search", home) as layer:
        layer.catch_up()
    with monkeypatch.context() as patched:
        where = "_finish" if step == "erase" else "_commit_again"
        patched.setattr(purging, where, killed)
        assert main(["purge", "--text", SECRET, "--yes"]) != 0
    with closing(sqlite3.connect(layer.path)) as db:  # which is emptied before the store is
        tables = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    assert (tables == 0) is (step == "commit")
    assert (home / PENDING_PURGE).exists()
    with pytest.raises(StoreUnavailable, match="foredeck purge"):
        open_store(Config(home=home))
    assert main(["purge"]) == 0
    assert not finish_pending(Config(home=home))
    assert holds(everything(store), SECRET) == []
    assert purge("--text", SECRET)["documents"] == 0


def test_a_damaged_layer_is_no_hindrance(home: Path, store: Store, purge: Purged) -> None:
    with Follower(store, "search", home) as layer:
        layer.catch_up()
    with closing(sqlite3.connect(layer.path)) as db:
        (root,) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'entry'").fetchone()
        (page_bytes,) = db.execute("PRAGMA page_size").fetchone()
    with layer.path.open("r+b") as file:
        file.seek((root - 1) * page_bytes)
        file.write(b"\xff" * page_bytes)

    assert purge("--text", SECRET)["purged"]
    assert not (home / PENDING_PURGE).exists()
    assert main(["search", "key"]) == 0


def test_an_entry_goes_with_all_that_came_from_it(home: Path, store: Store, purge: Purged) -> None:
    user = load_user(home)
    model, acts = Memory(store, user), UserActs(store, user)
    local = model.add(NewMemory("fact", f"The key is {SECRET}", session="s")).entry
    acts.pin(local.id, "decision")
    other = model.add(NewMemory("fact", "Something else", session="s")).entry

    told = purge(acts.name(local.id))
    assert told["documents"] == 2
    assert [entry.id for entry in acts.all()] == [other.id]
    assert holds(everything(store), f"The key is {SECRET}") == []


def test_an_entry_goes_from_prompts_of_earlier_versions_too(
    home: Path, store: Store, purge: Purged
) -> None:
    """They wrote when a rule was learned."""
    acts = UserActs(store, load_user(home))
    rule = acts.add(NewMemory("preference", "Never push on Fridays")).entry
    learned = day(rule.document.learned_ms)
    line = f"- [user-stated] [preference] Never push on Fridays (learned {learned})"
    head = SystemPromptDocument(id="system_prompt:old", messages=[line], provenance=by_foredeck())
    store.commit(Batch(puts=[head.seal()]))

    purge(acts.name(rule.id))
    assert holds(everything(store), "Never push on Fridays") == []


def test_an_entry_that_loses_a_text_stays_its_users_word(
    home: Path, store: Store, purge: Purged
) -> None:
    acts = UserActs(store, load_user(home))
    acts.add(NewMemory("preference", f"Use {SECRET} for tests"))
    purge("--text", SECRET)

    (kept,) = acts.of_user()
    assert (kept.trust, kept.document.fact) == ("user-stated", "Use [purged] for tests")


def test_a_result_goes_with_what_was_noted_of_it(store: Store, purge: Purged) -> None:
    """And with what was made of that in turn."""
    calls = store.query("call", {"session": "s"})
    addresses = [key[1] for call in calls for key in call.fields["keys"]]
    said = f"The output of b1 says that the key is {SECRET}, for tests"
    remark = Remark(time_ms=1, priority="high", category="fact", content=said)
    noted = ObservationDocument(
        id="observation:s:1",
        session="s",
        covers=addresses,
        content=f"- {said}",
        remarks=[remark],
        provenance=by_foredeck(),
    )
    reflected = ReflectionDocument(
        id="reflection:s:1",
        session="s",
        replaces=[noted.id],
        observations=[noted.id],
        content=f"In short, the key of the tests is {SECRET}",
        provenance=by_foredeck(),
    )
    store.commit(Batch([noted.seal(), reflected.seal()]))
    purge("b1")

    after = everything(store)
    assert holds(after, said) == []
    assert holds(after, "In short") == []
    assert holds(after, f"My key is {SECRET}")
