"""Every command that reads works on the stored fixture, and finds what is in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import Foredeck
from foredeck.cli.registry import COMMANDS
from foredeck.store import STORES
from resume.reading import OTHERS, READING, run_all
from resume.recorded import unpack_store, unpacked


def test_every_command_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    unpack_store(tmp_path / "home")
    (tmp_path / "out").mkdir()
    printed = {}
    for name, code, text in run_all(tmp_path / "home", tmp_path / "out"):
        assert code == 0, f"{name}: {text}"
        printed[name] = text
    assert "small-wi" in printed["sessions"]
    assert "make 0-0" in printed["show"]
    assert "0.ts" in printed["search"] + printed["history"]
    assert "identical" in printed["backup"]


def test_its_bundle_is_imported(tmp_path: Path, foredeck: Foredeck) -> None:
    bundle = tmp_path / "bundle.jsonl"
    bundle.write_bytes(unpacked("small-window.bundle.xz"))
    fresh = ["--home", str(tmp_path / "fresh")]
    foredeck("import", bundle, *fresh)
    assert "make 0-0" in foredeck("show", "small-window", "--call", "7", *fresh)
    foredeck("import", bundle, "--as-new", *fresh)
    unpack_store(tmp_path / "home")
    assert "and identical" in foredeck(tmp_path / "home", "import", bundle)


def test_no_command_is_left_out() -> None:
    of_stores = {name for store in STORES.values() for name in store.commands}
    benches = {name for name in COMMANDS if name.partition(" ")[0] == "bench"}
    read = {line.split()[0] for line in READING.values()}
    ours = set(COMMANDS) - of_stores - benches
    assert ours == read | OTHERS, "add a line to READING in resume/reading.py, or to OTHERS"
