"""What is at a path: every outcome, on real files."""

from __future__ import annotations

import hashlib
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foredeck.model.identity import sha256_hex
from foredeck.sources.looking import Look, decode, look
from processes import run_program

LIMIT = 1000


def within(seconds: float, call: Callable[[], Look]) -> Look:
    """The result of a call that must not block."""
    results: list[Look] = []
    thread = threading.Thread(target=lambda: results.append(call()), daemon=True)
    thread.start()
    thread.join(seconds)
    assert results, "the look blocked"
    return results[0]


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n\0\0",
        b"x" * (LIMIT - 1) + b"\0",
        b"caf\xe9",
        "\ufefftext".encode("utf-16-le"),
        "\ufefftext".encode("utf-16-be"),
        b"\xed\xa0\x80",
    ],
)
def test_binary_is_what_is_not_utf8_or_has_a_nul(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.txt").write_bytes(data)
    seen = look(str(tmp_path / "a.txt"), LIMIT)
    assert (seen.kind, seen.text, seen.size) == ("binary", None, len(data))
    assert seen.source_hash == hashlib.sha256(data).hexdigest()


@given(st.binary(max_size=200))
def test_text_and_bytes_are_the_same_thing(data: bytes) -> None:
    text = decode(data)
    assert text is None or (text.encode() == data and "\0" not in text)


@pytest.mark.parametrize(("size", "kind"), [(LIMIT, "text"), (LIMIT + 1, "huge")])
def test_the_text_of_a_huge_file_is_not_kept(tmp_path: Path, size: int, kind: str) -> None:
    (tmp_path / "a").write_bytes(b"x" * size)
    seen = look(str(tmp_path / "a"), LIMIT)
    assert (seen.kind, seen.size) == (kind, size)
    assert seen.source_hash == sha256_hex(b"x" * size)
    assert (seen.text is None) == (kind == "huge")


def test_a_file_too_large_to_be_hashed_goes_by_size_and_times(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * (LIMIT + 2))
    seen = look(str(path), LIMIT, hashed_bytes=LIMIT + 1)
    assert (seen.kind, seen.source_hash) == ("huge", None)
    os.utime(path, (1, 1))
    assert look(str(path), LIMIT, hashed_bytes=LIMIT + 1).revision != seen.revision


def test_a_file_that_says_it_is_empty_and_is_not() -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("needs /proc")
    assert look("/proc/self/status", 1 << 20).kind == "text"
    assert look("/proc/self/status", 10).kind == "huge"


def test_a_fifo_is_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    seen = within(5, lambda: look(str(tmp_path / "pipe"), LIMIT))
    assert (seen.kind, seen.detail) == ("special", "fifo")
    (tmp_path / "link").symlink_to("pipe")
    assert within(5, lambda: look(str(tmp_path / "link"), LIMIT)).kind == "missing"


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("elsewhere")
    (tmp_path / "link").symlink_to("file")
    assert look(str(tmp_path / "link"), LIMIT) == Look("missing")


def test_sockets_and_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        seen = look(str(tmp_path / "s"), LIMIT)
    assert (seen.kind, seen.detail) == ("special", "socket")
    seen = within(5, lambda: look("/dev/zero", LIMIT))
    assert (seen.kind, seen.detail) == ("special", "character device")


@pytest.mark.parametrize("name", ["gone", "file/below", "x" * 300, "nul\0", "sur\ud800"])
def test_missing(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("x")
    assert look(str(tmp_path / name), LIMIT).kind == "missing"


AS_NOBODY = """
import os, sys
from foredeck.sources.looking import look
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
for path in sys.argv[1:]:
    print(look(path, 1000).kind)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs permissions")
def test_what_may_not_be_read_or_reached() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        closed = folder / "closed"
        closed.mkdir()
        for path in (closed / "a", folder / "denied", folder / "open"):
            path.write_text("x")
        (folder / "denied").chmod(0)
        closed.chmod(0)
        paths = [folder / "open", folder / "denied", closed / "a", closed / "b"]
        done = run_program(
            sys.executable, "-c", AS_NOBODY, *map(str, paths), timeout=60, check=True
        )
        closed.chmod(0o700)
    assert done.stdout.split() == ["text", "unreadable", "unreachable", "unreachable"]


def test_a_device_that_fails_is_unreadable() -> None:
    if not Path("/proc/self/mem").exists():
        pytest.skip("needs /proc")
    assert look("/proc/self/mem", LIMIT).kind == "unreadable"
