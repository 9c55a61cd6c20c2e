"""A few rounds of each row of `foredeck bench crash`."""

from __future__ import annotations

import pytest

from foredeck_bench.crash.stores import Tally
from foredeck_bench.crash.table import ROWS, CannotRun, CrashSetting, run_row
from store.xtdb_node import installed_home

HERE = [name for name, row in ROWS.items() if "sqlite" in row.stores]
"""The rows that run on SQLite."""
ROUNDS = {"pi": 1, "pi-both": 1, "pi-engine": 1}


def sound(name: str, setting: CrashSetting) -> Tally:
    """A row's counts, after rounds in which nothing has gone wrong."""
    try:
        tally = run_row(name, setting)
    except CannotRun as error:
        pytest.skip(str(error))
    assert tally.to_json()["ok"], tally.examples
    assert tally.rounds == setting.rounds
    return tally


@pytest.mark.parametrize("name", HERE)
def test_each_row_on_sqlite(name: str) -> None:
    sound(name, CrashSetting(ROUNDS.get(name, 2)))


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "rounds"), [("engine", 2), ("node", 1), ("pi-node", 1), ("observe", 2), ("claim", 2)]
)
@pytest.mark.usefixtures("runtime")
def test_rows_on_xtdb(name: str, rounds: int) -> None:
    sound(name, CrashSetting(rounds, "xtdb", installed=installed_home()))


def test_without_a_node_none_can_be_killed() -> None:
    with pytest.raises(CannotRun, match="is for the store xtdb"):
        run_row("node", CrashSetting(1))
