"""Replaying on XTDB: the same prompts as on SQLite."""

from __future__ import annotations

from pathlib import Path

import pytest

from foredeck.errors import CommandRefused
from foredeck_lab.replay.options import ReplayOptions
from foredeck_lab.replay_command import replay
from replay.recordings import everything
from store.xtdb_node import installed_home


@pytest.mark.long
@pytest.mark.usefixtures("runtime")
@pytest.mark.parametrize("restart_every", [None, 1])
def test_prompts_are_the_same_as_on_sqlite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restart_every: int | None
) -> None:
    monkeypatch.setenv("FOREDECK_HOME", str(installed_home()))
    paths = [everything().write(tmp_path / f"{name}.jsonl") for name in ("one", "two")]
    told = []
    for store in ("sqlite", "xtdb"):
        folder = tmp_path / store
        options = ReplayOptions(store=store, prompts=folder, restart_every=restart_every)
        result = replay(paths, options)
        assert (result["total"]["errors"], result["total"]["invalid_prompts"]) == (0, 0)
        prompts = {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*.json")}
        told.append((result, prompts))
    assert told[0] == told[1]
    assert told[0][1]


def test_a_store_in_xtdb_cannot_be_kept(tmp_path: Path) -> None:
    session = everything().write(tmp_path / "one.jsonl")
    with pytest.raises(CommandRefused, match="--keep"):
        replay([session], ReplayOptions(store="xtdb"), keep=tmp_path / "keep")
