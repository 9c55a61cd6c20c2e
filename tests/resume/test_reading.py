"""Every command that reads works on the stored fixture, and finds what is in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from foredeck.cli.main import main
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


def test_its_bundle_is_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = tmp_path / "bundle.jsonl"
    bundle.write_bytes(unpacked("small-window.bundle.xz"))
    fresh = ["--home", str(tmp_path / "fresh")]
    assert main(["import", str(bundle), *fresh]) == 0
    assert main(["show", "small-window", "--call", "7", *fresh]) == 0
    assert "make 0-0" in capsys.readouterr().out
    assert main(["import", str(bundle), "--as-new", *fresh]) == 0
    unpack_store(tmp_path / "home")
    assert main(["import", str(bundle), "--home", str(tmp_path / "home")]) == 0
    assert "and identical" in capsys.readouterr().out


def test_no_command_is_left_out() -> None:
    of_stores = {name for store in STORES.values() for name in store.commands}
    benches = {name for name in COMMANDS if name.partition(" ")[0] == "bench"}
    read = {line.split()[0] for line in READING.values()}
    ours = set(COMMANDS) - of_stores - benches
    assert ours == read | OTHERS, "add a line to READING in resume/reading.py, or to OTHERS"
