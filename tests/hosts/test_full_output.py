"""Which files count as the full output of a tool (hosts/pi.py)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from foredeck.hosts.pi import MAX_BYTES, full_output


def test_the_file_that_the_details_name_is_kept_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    path.write_bytes(b"all of it\r\n\xff\x00")
    assert full_output({"fullOutputPath": str(path)}) == b"all of it\r\n\xff\x00"


@pytest.mark.parametrize("details", [None, "text", {}, {"fullOutputPath": None}, {"diff": "x"}])
def test_details_that_name_no_file_give_nothing(details: object) -> None:
    assert full_output(details) is None


def test_what_is_gone_or_no_file_gives_nothing(tmp_path: Path) -> None:
    for path in (tmp_path / "gone.log", tmp_path, Path("\0")):
        assert full_output({"fullOutputPath": str(path)}) is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_named_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert full_output({"fullOutputPath": str(tmp_path / "pipe")}) is None


def test_a_file_above_the_limit_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    assert full_output({"fullOutputPath": str(path)}) is None
    with path.open("wb") as file:
        file.truncate(MAX_BYTES)
    assert len(full_output({"fullOutputPath": str(path)}) or b"") == MAX_BYTES
