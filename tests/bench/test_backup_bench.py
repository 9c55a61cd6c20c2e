"""A short `foredeck bench backup`: what was restored is what was there, and commits went on."""

from __future__ import annotations

from foredeck_bench.backups import run_backup


def test_a_small_store_is_backed_up_beside_a_writer() -> None:
    found = run_backup(mib=4)
    assert found["equal"]
    assert found["mib"] >= 3
    assert found["before"]["commits"] > 0
