"""Backup of a node while others write, and restoring it: every object and version."""

from __future__ import annotations

import hashlib
import io
import json
import stat
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foredeck.cli.main import main
from foredeck.errors import Corrupt, StoreError, StoreUnavailable
from foredeck.store.copying import compare
from foredeck.store.protocol import Token
from foredeck.xtdb.backup import back_up, restore
from foredeck.xtdb.database.adapter import XtdbStore, open_xtdb
from foredeck.xtdb.node import NodeFolder, private_node, start, stop
from foredeck.xtdb.runtime import Runtime

from .documents import batch, note


def ignore(_steps: int, _what: str) -> None:
    """Nobody looks at the progress."""


@contextmanager
def opened(node: NodeFolder) -> Iterator[XtdbStore]:
    """The store on a running node."""
    running = node.running()
    assert running is not None
    with closing(open_xtdb(running.url, token=node.token(), timeout_ms=60_000)) as store:
        yield store


@contextmanager
def being_written(node: NodeFolder) -> Iterator[tuple[list[Token], Callable[[], None]]]:
    """Somebody who commits until the block ends: the acknowledged tokens, and a wait for more."""
    tokens: list[Token] = []
    stopping, wrote = threading.Event(), threading.Condition()

    def write() -> None:
        with opened(node) as store:
            while not stopping.is_set():
                n = len(tokens)
                token = store.commit(batch(note(f"n{n % 7}", f"{n} " * (n % 3) * 700)))
                with wrote:
                    tokens.append(token)
                    wrote.notify_all()

    def wait() -> None:
        with wrote:
            goal = len(tokens) + 10
            assert wrote.wait_for(lambda: len(tokens) >= goal or not thread.is_alive(), 60)
        assert thread.is_alive()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield tokens, wait
    finally:
        stopping.set()
        thread.join()


def test_a_backup_under_load_has_everything_that_was_acknowledged(
    runtime: Runtime, tmp_path: Path
) -> None:
    target, fresh = tmp_path / "backup.tar", NodeFolder(tmp_path / "fresh")
    with private_node(tmp_path / "live", runtime, "rocksdb") as live:
        with being_written(live) as (tokens, wait):
            wait()
            before = list(tokens)
            made = back_up(live, target, ignore)
            wait()
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
        assert not (live.data / "checkpoint").exists()
        restored = restore(target, fresh, report=ignore)
        assert restored == replace(made, file=fresh.data, hints=restored.hints)
        with (
            private_node(fresh.root, runtime, "rocksdb"),
            opened(live) as original,
            opened(fresh) as copy,
        ):
            found = compare(original, copy)
            assert found.equal, found.differs
            assert len(before) <= found.copy.transactions < len(tokens)
            assert len(copy.transactions(before)) == len(before)
            assert found.copy.versions == found.copy.transactions
            assert found.copy.blobs > 0
            later = copy.commit(batch(note("n0", "goes on")))
            assert copy.latest() == later


@pytest.fixture(scope="module")
def small(runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Token]:
    """A backup of a node at rest, and the token of what is in it."""
    folder = tmp_path_factory.mktemp("small")
    with private_node(folder / "node", runtime, "rocksdb") as node, opened(node) as store:
        token = store.commit(batch(note("a", "text " * 1_000)))
    back_up(node, folder / "backup.tar", ignore)
    return folder / "backup.tar", token


def test_a_stopped_node_is_backed_up_too(
    small: tuple[Path, Token], runtime: Runtime, tmp_path: Path
) -> None:
    target, token = small
    folder = NodeFolder(tmp_path)
    restore(target, folder, report=ignore)
    with private_node(tmp_path, runtime, "rocksdb"), opened(folder) as store:
        assert store.latest() == token


def contents(folder: NodeFolder) -> dict[str, bytes]:
    """The files of a node's data."""
    files = (path for path in folder.data.rglob("*") if path.is_file())
    return {str(path.relative_to(folder.data)): path.read_bytes() for path in files}


def test_existing_data_is_refused_or_kept_under_another_name(
    small: tuple[Path, Token], tmp_path: Path
) -> None:
    folder = NodeFolder(tmp_path)
    folder.data.mkdir()
    (folder.data / "mine").write_text("mine")
    with pytest.raises(StoreUnavailable, match="--force"):
        restore(small[0], folder, report=ignore)
    assert contents(folder) == {"mine": b"mine"}
    aside = restore(small[0], folder, force=True, report=ignore).kept
    assert aside is not None
    assert (aside / "mine").read_text() == "mine"
    assert any(name.startswith("log/") for name in contents(folder))


def test_a_running_node_is_not_restored_into(
    small: tuple[Path, Token], runtime: Runtime, tmp_path: Path
) -> None:
    with private_node(tmp_path, runtime, "rocksdb") as node:
        with pytest.raises(StoreUnavailable, match="xtdb down"):
            restore(small[0], node, force=True, report=ignore)
        with opened(node) as store:
            assert store.latest() is None


def test_the_next_start_completes_a_killed_restore(
    small: tuple[Path, Token], runtime: Runtime, tmp_path: Path
) -> None:
    folder = NodeFolder(tmp_path)
    restore(small[0], folder, report=ignore)
    folder.data.rename(folder.restored)
    with private_node(tmp_path, runtime, "rocksdb"), opened(folder) as store:
        assert store.latest() == small[1]


def test_nothing_to_back_up_is_reported(runtime: Runtime, tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="nothing to back up"):
        back_up(NodeFolder(tmp_path / "none"), tmp_path / "backup.tar", ignore)
    with (
        private_node(tmp_path / "memory", runtime) as node,
        pytest.raises(StoreUnavailable, match="not in RocksDB"),
    ):
        back_up(node, tmp_path / "backup.tar", ignore)
    assert not (tmp_path / "backup.tar").exists()


def members(source: Path) -> list[tuple[tarfile.TarInfo, bytes]]:
    """The files of a backup."""
    with tarfile.open(source) as tar:
        found = []
        for member in tar.getmembers():
            stream = tar.extractfile(member)
            assert stream is not None
            found.append((member, stream.read()))
        return found


def rewritten(target: Path, files: list[tuple[tarfile.TarInfo, bytes]]) -> Path:
    """A tar file of these."""
    with tarfile.open(target, "w") as tar:
        for member, data in files:
            member.size = len(data) if member.isreg() else 0
            tar.addfile(member, io.BytesIO(data))
    return target


def _flip(files: Any) -> Any:
    (member, data) = files[-1]
    return [*files[:-1], (member, bytes([data[0] ^ 1]) + data[1:])]


def _escape(files: Any) -> Any:
    """A file that would be written outside, also named in the manifest."""
    data = b"bad"
    manifest = json.loads(files[0][1])
    entry = {"path": "log/../../bad", "size": 3, "sha256": hashlib.sha256(data).hexdigest()}
    manifest["files"].append(entry)
    return [
        (files[0][0], json.dumps(manifest).encode()),
        *files[1:],
        (tarfile.TarInfo(entry["path"]), data),
    ]


def _link(files: Any) -> Any:
    member = tarfile.TarInfo(files[-1][0].name)
    member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
    return [*files[:-1], (member, b"")]


def _newer(files: Any) -> Any:
    manifest = json.loads(files[0][1]) | {"version": 99}
    return [(files[0][0], json.dumps(manifest).encode()), *files[1:]]


@pytest.mark.parametrize(
    "damage",
    [
        _flip,
        _escape,
        _link,
        _newer,
        lambda files: files[1:],
        lambda files: files[:-1],
        lambda files: [*files, files[-1]],
        lambda files: [*files, (tarfile.TarInfo("log/more"), b"x")],
        lambda files: [(files[0][0], b"{}"), *files[1:]],
        lambda files: [(files[0][0], b"{"), *files[1:]],
    ],
    ids=["bit", "path", "link", "newer", "no list", "less", "twice", "more", "other", "torn list"],
)
def test_a_damaged_backup_changes_nothing(
    small: tuple[Path, Token], tmp_path: Path, damage: Callable[[Any], Any]
) -> None:
    folder = NodeFolder(tmp_path / "node")
    folder.data.mkdir(parents=True)
    (folder.data / "mine").write_text("mine")
    bad = rewritten(tmp_path / "bad.tar", damage(members(small[0])))
    with pytest.raises(StoreError, match=r"backup|damaged|newer|SHA-256"):
        restore(bad, folder, force=True, report=ignore)
    assert contents(folder) == {"mine": b"mine"}
    assert not folder.restoring.exists()
    assert not (tmp_path / "bad").exists()


def test_a_torn_backup_changes_nothing(small: tuple[Path, Token], tmp_path: Path) -> None:
    data = small[0].read_bytes()
    for size in (0, 100, 600, len(data) // 2, len(data) - 11_000):
        (tmp_path / "torn.tar").write_bytes(data[:size])
        with pytest.raises(Corrupt, match="backup"):
            restore(tmp_path / "torn.tar", NodeFolder(tmp_path / "node"), report=ignore)
    assert not NodeFolder(tmp_path / "node").data.exists()


def test_the_commands(
    runtime: Runtime,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    home = tmp_path / "home"
    (home / "xtdb").mkdir(parents=True)
    (home / "xtdb" / runtime.folder.name).symlink_to(runtime.folder)
    monkeypatch.setenv("FOREDECK_HOME", str(home))
    monkeypatch.setenv("FOREDECK_STORE", "xtdb")
    node, target = NodeFolder(home / "xtdb"), tmp_path / "backup.tar"

    def run_json(*words: str) -> Any:
        capsys.readouterr()
        assert main([*words, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    try:
        assert main(["backup", str(target)]) == 3
        assert "nothing to back up" in capsys.readouterr().err
        start(node, runtime)
        with opened(node) as store:
            store.commit(batch(note("a", "one")))
            token = store.commit(batch(note("a", "two")))
        made = run_json("backup", str(target), "--verify")
        assert len(made["verified"]) == 64
        assert main(["restore", str(target)]) == 3
        assert "xtdb down" in capsys.readouterr().err
        run_json("xtdb", "down")
        assert main(["restore", str(target)]) == 3
        assert "--force" in capsys.readouterr().err
        restored = run_json("restore", str(target), "--force")
        assert Path(restored["kept"]).is_dir()
        assert main(["backup", str(tmp_path / "pair.tar")]) == 0
        assert main(["restore", str(tmp_path / "pair.tar"), "--force"]) == 0
        assert "xtdb up" in capsys.readouterr().out
        run_json("xtdb", "up")
        with opened(node) as store:
            assert store.latest() == token
    finally:
        stop(node)
    monkeypatch.setenv("FOREDECK_XTDB__TOPOLOGY", "postgres")
    assert main(["backup", str(target)]) == 3
    assert "pg_dump" in capsys.readouterr().err
    monkeypatch.setenv("FOREDECK_XTDB_URL", "http://127.0.0.1:9")
    assert main(["restore", str(target)]) == 3
    assert "foredeck migrate" in capsys.readouterr().err
