"""A purge is done once nothing holds the text: in no version, text, index, draft, log or free page,
in no encoding, packed or cut."""

from __future__ import annotations

import gzip
import json
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from context.driver import Host
from context.messages import lines
from context.scenes import bash, go_on, use
from foredeck.cli.main import main
from foredeck.config import Config
from foredeck.model.messages import put_blob
from foredeck.model.records import MISSING, NicknameDocument, PathChange
from foredeck.sources.git import pointer
from foredeck.store.place import open_store
from foredeck.store.protocol import Batch
from foredeck.store.purging import holders_in_files, holders_in_store
from foredeck.store.redaction import Redaction
from foredeck.store.store import Store, open_sqlite
from foredeck_bench.crash.stores import prepared
from foredeck_xtdb.link import open_database
from foredeck_xtdb.local_copy import open_copy, remote_of
from purged import Purged, home, purge
from store.documents import file, note
from store.every_type import change_of, kept
from store.xtdb_node import installed_home

__all__ = ["home", "purge"]

SECRET = "sk-live-51H8xQpR7tVw2yZa4bC6dE8fG0hJ2kL4"
"""A token of forty characters."""


def work(home: Path, session: str = "s", **settings: Any) -> None:
    """A session in which the secret is said, cut, shown and searched for."""
    host = Host(home, session=session, **settings).begin(f"My key is {SECRET}, keep it.")
    bash(host, "b1", lines(40, f"key={SECRET}"))
    # The display of the arguments is cut inside the token.
    long_command = (
        f"curl --silent --show-error --location --header 'Authorization: Bearer {SECRET}'"
    )
    use(host, "b2", "bash", f'{{"token": "{SECRET}"}}', command=long_command)
    use(host, "b3", "bash", f"…{SECRET[12:]} was found in a passage {SECRET[:20]}…", command="x")
    for number in range(3):
        go_on(host, f"Turn {number}", answer=f"Done with {SECRET}.")
    host.close()


def put_everywhere(store: Store, session: str = "s") -> None:
    """The secret where no chat puts it."""
    blobs: dict[str, bytes] = {}
    change = change_of(
        session,
        90,
        PathChange(
            path=f"/repo/{SECRET}.bin", before=kept(b"\xff" + SECRET.encode(), blobs), after=MISSING
        ),
        PathChange(path="/repo/u", before=kept(SECRET.encode("utf-16"), blobs), after=MISSING),
    )
    named = file(f"/repo/{SECRET}/a.txt", "text of a file")
    beside = file(f"/repo/{SECRET}/b.txt", "text of another file")
    link = pointer(f"https://example.com/a.pdf?key={SECRET}")
    claim = NicknameDocument(id=f"nickname:{SECRET}", object=named.id).seal()
    store.commit(Batch([change, named, beside, link, claim], blobs))
    # A text that no document names, as a killed process may leave it: it lies there packed.
    orphan: dict[str, bytes] = {}
    put_blob((SECRET + " and much else\n").encode() * 400, orphan)
    store.commit(Batch([note("n")], orphan))


def plant(home: Path) -> None:
    """The secret in what lies beside the store."""
    for folder in ("derived", "logs", "rewinds"):
        (home / folder).mkdir(exist_ok=True)
    (home / "derived" / "cache.uses").write_bytes(b"head\n" + zlib.compress(SECRET.encode() * 9))
    (home / "logs" / "engine.log").write_text(f"error: {SECRET}\nfine\n")
    (home / "logs" / "old.log").write_bytes(f"error: {SECRET}".encode("utf-16"))
    (home / "rewinds" / "r.json").write_text(json.dumps([{"path": f'/a"{SECRET}'}]))
    (home / ".foredeck-abcd1234.draft").write_bytes(gzip.compress(SECRET.encode()))
    (home / ".foredeck-zz_9abcd.draft").write_text(SECRET)


def pieces(data: bytes) -> list[bytes]:
    """What of the secret is found in bytes as they are."""
    forms = [
        SECRET.encode(),
        SECRET.encode("utf-16-le"),
        SECRET.encode("utf-16-be"),
        SECRET[:16].encode(),
    ]
    return [form for form in forms if form in data]


def raw_holders(home: Path) -> list[str]:
    found = (path for path in home.rglob("*") if path.is_file())
    return [str(path) for path in found if pieces(path.read_bytes())]


@pytest.mark.parametrize("how", [("--text", SECRET), ("--regex", "sk-live-[0-9A-Za-z]{20,}")])
def test_nothing_holds_it_any_more(home: Path, purge: Purged, how: tuple[str, str]) -> None:
    work(home)
    with closing(open_sqlite(home / "foredeck.db")) as store:
        put_everywhere(store)
        assert "Bearer sk-live-" in str(store.query("toolcall")[1].fields["args_display"])
        assert SECRET not in str(store.query("toolcall")[1].fields["args_display"])
    assert main(["search", "key"]) == 0
    plant(home)

    told = purge(*how)
    assert (told["purged"], told["left"], told["to_do"]) == (True, [], [])
    assert raw_holders(home) == []
    with closing(open_sqlite(home / "foredeck.db")) as store:
        assert list(holders_in_store(store, Redaction([SECRET]))) == []
        shown = [str(head.fields["args_display"]) for head in store.query("toolcall")]
        assert not any("sk-live" in text for text in shown)
        paths = {str(head.fields["source"]["path"]) for head in store.query("file")}
        assert len({path for path in paths if "[purged-" in path}) == 2
        assert not any("sk-live" in head.id for head in store.query("nickname"))
    assert (home / "logs" / "engine.log").read_text() == "error: [purged]\nfine\n"
    assert not list(home.glob(".*"))
    assert main(["search", "key"]) == 0
    assert main(["show", "s", "--call", "2"]) == 0
    assert purge(*how)["documents"] == 0


def test_a_store_that_was_kept_loses_it_too(home: Path, purge: Purged, tmp_path: Path) -> None:
    work(home)
    backup = tmp_path / "backup.db"
    assert main(["backup", str(backup)]) == 0
    assert main(["restore", str(backup), "--force"]) == 0
    (replaced,) = home.glob("foredeck.db.replaced-*")
    assert purge("--text", SECRET)["purged"]
    with closing(open_sqlite(replaced)) as store:
        assert list(holders_in_store(store, Redaction([SECRET]))) == []
        assert store.query("call", {"session": "s"})
    assert raw_holders(home) == []


def test_what_cannot_be_cleaned_is_named_and_it_is_not_done(
    home: Path, purge: Purged, capsys: pytest.CaptureFixture[str]
) -> None:
    work(home)
    damaged = home / "foredeck.db.damaged-2026-01-01"
    damaged.write_bytes(b"SQLite format 3\0" + b"\xff" * 4096 + SECRET.encode())
    told = purge("--text", SECRET, code=1)
    assert (told["purged"], told["left"]) == (False, [str(damaged)])
    assert main(["purge", "--text", SECRET, "--yes"]) == 1
    assert f"Not done. These still hold it:\n  {damaged}\n" in capsys.readouterr().out
    damaged.unlink()
    assert purge("--text", SECRET)["purged"]


def test_a_packed_copy_is_found(home: Path) -> None:
    """What the look afterwards finds, where nothing has been done about it."""
    work(home)
    with closing(open_sqlite(home / "foredeck.db")) as store:
        put_everywhere(store)
        found = list(holders_in_store(store, Redaction([SECRET])))
    assert {"toolcall", "file", "pointer", "change", "nickname", "text"} <= {
        name.partition(" ")[0] for name in found
    }
    plant(home)
    with closing(sqlite3.connect(home / "other.sqlite")) as db:
        db.execute("CREATE TABLE t (a)")
        db.execute("INSERT INTO t VALUES (?)", (zlib.compress(SECRET.encode() * 5),))
        db.commit()
    names = {path.name for path in holders_in_files(home, Redaction([SECRET]))}
    assert {"engine.log", "old.log", "r.json", "other.sqlite", ".foredeck-abcd1234.draft"} <= names


CUT_OUT = "[purged]\n(1,203 characters left out)\n[purged]"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"a {SECRET} b", "a [purged] b"),
        (f"Bearer {SECRET[:33]}…", "Bearer [purged]…"),
        (f"Bearer {SECRET[:9]}... and on", "Bearer [purged]... and on"),
        (SECRET[:8], "[purged]"),
        (SECRET[:7], SECRET[:7]),
        (f"keys like {SECRET[:8]}... or {SECRET[:8]}1", f"keys like [purged]... or {SECRET[:8]}1"),
        (f"…{SECRET[9:]} b", "…[purged] b"),
        (f"{SECRET[30:]}\nnext", "[purged]\nnext"),
        (f"the end {SECRET[30:]}", f"the end {SECRET[30:]}"),
        (f"@3 out chars 100-200 of it\n{SECRET[5:]} x", "@3 out chars 100-200 of it\n[purged] x"),
        (json.dumps({"a": SECRET + '"'}), '{"a": "[purged]\\""}'),
        (f"a …{SECRET[10:25]}… b", "a …[purged]… b"),
        (f"{SECRET[:20]}\n(1,203 characters left out)\n{SECRET[-9:]}", CUT_OUT),
        (
            f"<activate @3: 4120 chars folded>{SECRET[9:]} b",
            "<activate @3: 4120 chars folded>[purged] b",
        ),
        (f"{SECRET[:20]}\n\n[Showing lines 1-2 of 9]", "[purged]\n\n[Showing lines 1-2 of 9]"),
    ],
)
def test_cut_texts(text: str, left: str) -> None:
    assert Redaction([SECRET]).text(text) == left


def test_escaped_texts() -> None:
    secret = 'pass "é" \n word'
    escaped = json.dumps({"a": secret})
    redaction = Redaction([secret])
    for text in (escaped, json.dumps(escaped), json.dumps([secret], ensure_ascii=False)):
        assert "[purged]" in redaction.text(text)
    assert redaction.text('x pass "é" word') == "x [purged]"


# XTDB


@pytest.fixture
def on_xtdb(home: Path, monkeypatch: pytest.MonkeyPatch, runtime: object) -> Iterator[Config]:
    """A node of foredeck's own, in RocksDB, with what `work` and `put_everywhere` store."""
    del runtime
    monkeypatch.setenv("FOREDECK_STORE", "xtdb")
    with prepared(home, "xtdb", installed_home()):
        config = Config(home=home, store="xtdb")
        work(home, store="xtdb")
        with closing(open_copy(config)) as store:
            put_everywhere(store)
            deliver(store)
        yield config


def deliver(store: Store) -> None:
    remote_of(store).start()
    while remote_of(store).backlog.entries:
        pass


def test_nothing_of_it_is_left_in_a_node(home: Path, on_xtdb: Config, purge: Purged) -> None:
    plant(home)
    assert raw_holders(home / "xtdb")
    told = purge("--text", SECRET)
    assert (told["purged"], told["left"], told["to_do"]) == (True, [], [])
    assert raw_holders(home) == []
    with closing(open_database(on_xtdb)) as database:
        assert list(holders_in_store(database, Redaction([SECRET]))) == []
        assert database.find("call", {"session": "s"})
    with closing(open_store(on_xtdb)) as store:
        assert store.query("call", {"session": "s"})
    assert main(["show", "s", "--call", "2"]) == 0


def test_a_database_of_somebody_elses_is_not_said_to_be_done(
    home: Path, on_xtdb: Config, purge: Purged, monkeypatch: pytest.MonkeyPatch
) -> None:
    from foredeck_xtdb.node import own_node_folder

    node = own_node_folder(home).running()
    monkeypatch.setenv("FOREDECK_XTDB_URL", node.url)
    monkeypatch.setenv("FOREDECK_XTDB__TOKEN_FILE", str(own_node_folder(home).token_file))
    del on_xtdb
    told = purge("--text", SECRET, code=1)
    assert not told["purged"]
    assert "is not foredeck's to restart" in told["to_do"][0]
