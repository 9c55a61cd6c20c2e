"""What a request passes on its way is counted."""

from __future__ import annotations

import pytest

from foredeck_bench.walks import main


def test_each_way_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main() == 0
    _, *rows = capsys.readouterr().out.splitlines()
    counted = {row[:34].strip(): [int(n) for n in row[34:].split()] for row in rows}
    assert len(counted) == 6
    assert all(functions > files > 0 for functions, files, _ in counted.values())
    assert counted["a task is claimed"][2] == 1
