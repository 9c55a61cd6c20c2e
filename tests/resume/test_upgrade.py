"""Every command that reads works on the stores of earlier versions, and finds what is in them."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from foredeck.cli.main import main
from foredeck.cli.registry import COMMANDS
from foredeck.store import STORES
from resume.reading import OTHERS, READING, run_all
from resume.recorded import FIXTURES, FORMS, unpack_store


@pytest.mark.parametrize("form", FORMS)
def test_every_command_reads_it(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    unpack_store(FIXTURES / form, tmp_path / "home")
    (tmp_path / "out").mkdir()
    printed = {}
    for name, code, text in run_all(tmp_path / "home", tmp_path / "out"):
        assert code == 0, f"{name}: {text}"
        printed[name] = text
    assert "small-wi" in printed["sessions"]
    assert "make 0-0" in printed["show"]
    assert "0.ts" in printed["search"] + printed["history"]
    assert "identical" in printed["backup"]
    assert ("m-" in printed["memory"]) == (form in ("memory", "observations"))
    assert ("First task" in printed["tasks"]) == (form in ("tasks", "memory", "observations"))


@pytest.mark.parametrize("form", FORMS)
def test_what_was_exported_then_is_imported(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = tmp_path / "bundle.jsonl"
    bundle.write_bytes(lzma.decompress((FIXTURES / form / "small-window.bundle.xz").read_bytes()))
    fresh = ["--home", str(tmp_path / "fresh")]
    assert main(["import", str(bundle), *fresh]) == 0
    assert main(["show", "small-window", "--call", "7", *fresh]) == 0
    assert "make 0-0" in capsys.readouterr().out
    assert main(["import", str(bundle), "--as-new", *fresh]) == 0
    if form != "0.1.0":  # whose bundle is of another run than its store
        unpack_store(FIXTURES / form, tmp_path / "home")
        assert main(["import", str(bundle), "--home", str(tmp_path / "home")]) == 0
        assert "and identical" in capsys.readouterr().out


def test_no_command_is_left_out() -> None:
    of_stores = {name for store in STORES.values() for name in store.commands}
    benches = {name for name in COMMANDS if name.partition(" ")[0] == "bench"}
    read = {line.split()[0] for line in READING.values()}
    ours = set(COMMANDS) - of_stores - benches
    assert ours == read | OTHERS, "add a line to READING in resume/reading.py, or to OTHERS"


def test_each_fixture_is_a_stored_form() -> None:
    assert {folder.name for folder in FIXTURES.iterdir()} == set(FORMS)
