"""What people are told of a node that did not start."""

from __future__ import annotations

from pathlib import Path

import pytest

from foredeck_xtdb.node import log_tail, why_it_did_not_start

EARLIER = "INFO foredeck.node.main - stopped\n"
ERROR = "ERROR foredeck.node.main - the node could not be started: Error starting system\n"
ROCKS = "Caused by: org.rocksdb.RocksDBException: "


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The log of a node in a state folder, with what an earlier one has written."""
    folder = tmp_path / "xtdb"
    folder.mkdir()
    file = folder / "node.log"
    file.write_text(EARLIER)
    return file


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        (f"{ROCKS}IO error: No space left on device: /h/xtdb/data/log/1.log", "make room"),
        (f"{ROCKS}While lock file: /h/xtdb/data/log/LOCK: Resource", "Another process uses {data}"),
        (f"{ROCKS}While opening /h/xtdb/data/index/MANIFEST-1: No such", "delete {data}/index"),
        (f"{ROCKS}Corruption: checksum mismatch in /h/xtdb/data/log/1.sst", "restore FILE"),
        ("org.postgresql.util.PSQLException: Connection to db:1 refused.", "FOREDECK_XTDB_PGHOST"),
    ],
)
def test_the_log_and_what_to_do(log: Path, line: str, advice: str) -> None:
    with log.open("a") as file:
        file.write(f"{ERROR}{line}\n\tat org.example.Main\n\t... 19 more\n")
    *said, last = why_it_did_not_start(log, len(EARLIER)).splitlines()
    assert said == [ERROR.strip(), line]
    assert advice.format(data=log.parent / "data") in last


def test_an_unknown_error_is_shown_as_it_is(log: Path) -> None:
    with log.open("a") as file:
        file.write(ERROR)
    assert why_it_did_not_start(log, len(EARLIER)) == ERROR.strip()
    assert log_tail(log) == f"{EARLIER}{ERROR}".strip()
    assert why_it_did_not_start(log.with_name("none"), 0) == ""
