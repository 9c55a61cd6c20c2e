"""A short `foredeck bench blame`: each line is put down to the version that brought it."""

from __future__ import annotations

from foredeck_bench.blame import run_blame


def test_lines_are_put_down_to_their_versions() -> None:
    found = run_blame(lines=60, versions=30)
    assert found["versions"] == 30
    assert found["right"]
