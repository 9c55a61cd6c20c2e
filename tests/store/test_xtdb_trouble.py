"""A node on a full disk, one that stops in mid-request, and what is as large as it may be."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import string
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from foredeck.config.sections import LimitsSection
from foredeck.errors import StoreError
from foredeck.model.documents import Document
from foredeck.model.identity import sha256_hex
from foredeck.store.protocol import Batch, Token
from foredeck_xtdb.database.adapter import Database, open_xtdb
from foredeck_xtdb.database.client import Refused, XtdbClient
from foredeck_xtdb.node import NodeFolder, private_node
from foredeck_xtdb.runtime import COMPILED, Runtime

from .documents import AWKWARD, AWKWARD_IDS, batch, note
from .pulled import Pulled
from .sessions import dump
from .xtdb_node import opener


@contextmanager
def opened(node: NodeFolder, timeout_ms: int = 60_000) -> Iterator[Database]:
    """The store on a running node."""
    with closing(open_xtdb(node.running().url, token=node.token(), timeout_ms=timeout_ms)) as store:
        yield store


def mount(*words: str) -> None:
    """Run `mount`; skips the test where that is not allowed."""
    program = shutil.which("mount")
    if program is None or os.geteuid() != 0:
        pytest.skip("only root can make a small file system")
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no small file system can be made here: {done.stderr.strip()}")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """The folder of a node whose data lie on a file system of 24 MB."""
    data = tmp_path / "node" / "data"
    data.mkdir(parents=True)
    mount("-t", "tmpfs", "-o", "size=24m", "tmpfs", str(data))
    yield data.parent
    subprocess.run(["umount", "--lazy", str(data)], check=True)


def fill(store: Database) -> tuple[list[Token], str]:
    """Commit a megabyte at a time until that is refused: the tokens of what was acknowledged, and
    what was said then."""
    tokens: list[Token] = []
    try:
        while len(tokens) < 100:
            data = os.urandom(1_000_000)
            puts = [note(f"n{len(tokens)}")]
            tokens.append(store.commit(Batch(puts, {sha256_hex(data): data})))
    except StoreError as error:
        return tokens, str(error)
    raise AssertionError("100 MB fit into 24 MB")


def test_a_full_disk_is_reported_and_loses_nothing(runtime: Runtime, small_disk: Path) -> None:
    with private_node(small_disk, runtime, "rocksdb") as node, opened(node, 5_000) as store:
        tokens, said = fill(store)
        assert tokens
        # It is the log that finds no room, or the index.
        assert "No space left" in said
        mount("-o", "remount,size=200m", str(node.data))
    with private_node(small_disk, runtime, "rocksdb") as node, opened(node) as store:
        assert len(store.transactions(tokens)) == len(tokens)
        for number, token in enumerate(tokens):
            assert [head.token for head in store.history(f"n{number}")] == [token]
        assert store.commit(batch(note("later"))) == store.latest()


@contextmanager
def frozen(node: NodeFolder) -> Iterator[None]:
    """The node neither answers nor ends during the block."""
    running = node.running()
    os.kill(running.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(running.pid, signal.SIGCONT)


def test_a_node_that_stops_for_a_moment_costs_nothing(runtime: Runtime, tmp_path: Path) -> None:
    """Stopped at any point of a request, it answers when it goes on."""
    with private_node(tmp_path, runtime) as node, opened(node) as store:
        tokens: list[Token] = []
        stopping = threading.Event()

        def write() -> None:
            while not stopping.is_set():
                tokens.append(store.commit(batch(note("a", f"{len(tokens)} " * 2_000))))

        thread = threading.Thread(target=write)
        thread.start()
        for pause in (0.001, 0.01, 0.1, 0.3):
            with frozen(node):
                stopping.wait(pause)
            goal = len(tokens) + 2
            while len(tokens) < goal and thread.is_alive():
                stopping.wait(0.01)
        stopping.set()
        thread.join()
        assert [head.token for head in store.history("a")] == tokens
        assert len(tokens) > 8


# Sizes


def test_a_file_of_the_largest_size(memory_node: NodeFolder) -> None:
    size = LimitsSection().max_file_bytes
    text = "".join(random.Random(1).choices(string.printable, k=size))
    with closing(opener(memory_node)()) as store:
        token = store.commit(batch(note("large", text)))
        assert store.get("large", Document, token).content == text


@pytest.fixture
def narrow(runtime: Runtime, tmp_path: Path) -> Runtime:
    """The node with a topology `memory` that takes bodies of 20,000 bytes at most."""
    folder = tmp_path / "runtime"
    (folder / "config").mkdir(parents=True)
    for name in ("lib", COMPILED):
        (folder / name).symlink_to(runtime.folder / name)
    (folder / "config" / "memory.edn").write_text("{:http {:max-body-size 20000} :xtdb {}}")
    return Runtime(folder, runtime.java)


def test_one_byte_more_than_the_largest_body_is_refused(narrow: Runtime, tmp_path: Path) -> None:
    def operations(size: int) -> list[list[Any]]:
        """A transaction whose body has that many bytes."""
        doc = {"xt/id": "a", "n/x": ""}
        empty = len(json.dumps({"tx-ops": [["put", doc]]}, separators=(",", ":")))
        return [["put", doc | {"n/x": "x" * (size - empty)}]]

    with private_node(tmp_path / "node", narrow) as node:
        with closing(XtdbClient(node.running().url, token=node.token())) as client:
            assert client.commit(operations(20_000))
            found = client.entity("a")
            with pytest.raises(Refused, match="larger than 20000 bytes"):
                client.commit(operations(20_001))
            assert client.entity("a") == found
        with opened(node) as store:
            token = store.commit(batch(note("a", "small")))
            noise = "".join(random.Random(1).choices(string.printable, k=30_000))
            with pytest.raises(StoreError, match="larger than 20000 bytes"):
                store.commit(batch(note("a", noise)))
            assert store.latest() == token
            assert store.commit(batch(note("a", "small again"))) == store.latest()


def test_a_lone_surrogate_is_never_sent(memory_node: NodeFolder) -> None:
    """XTDB would make a question mark of it."""
    client = XtdbClient(memory_node.running().url, token=memory_node.token())
    with closing(client), pytest.raises(UnicodeEncodeError):
        client.commit([["put", {"xt/id": "a", "n/x": "\ud800"}]])


def test_whatever_is_awkward_survives_a_killed_node(runtime: Runtime, tmp_path: Path) -> None:
    def puts(round: str) -> Batch:
        texts = [note(f"t{n}", text, extra={text: [text]}) for n, text in enumerate(AWKWARD)]
        return batch(*texts, *(note(id, f"{round} {id}", nickname=id) for id in AWKWARD_IDS))

    with private_node(tmp_path, runtime, "rocksdb") as node:
        with opened(node) as database, closing(Pulled(database)) as store:
            store.commit(puts("one"))
            store.commit(puts("two"))
            before = dump(store)
        os.kill(node.running().pid, signal.SIGKILL)
    with private_node(tmp_path, runtime, "rocksdb") as node, opened(node) as database:
        for id in AWKWARD_IDS:
            assert list(database.find("note", {"nickname": id})) == [id]
        with closing(Pulled(database)) as store:
            assert dump(store) == before
