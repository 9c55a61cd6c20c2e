"""Edits whose text was not in view: where it had stood, and what had let it go."""

from __future__ import annotations

from pathlib import Path

import pytest

from foredeck.replay.options import ReplayOptions
from foredeck_bench.lost import find_losses, main
from replay.recordings import SOURCE, Recording, call, text

IMPATIENT = ("adaptive.patience=1", "adaptive.fold_runs_after=0")


def paused() -> Recording:
    """A file is read in whole, another in part; both are edited after a pause, and a new one."""
    recording = Recording()
    recording.user("Look at the source.")
    recording.run("r1", "read", SOURCE, path="src/a.ts")
    recording.run("r2", "read", SOURCE.replace("value", "other"), path="src/b.ts", offset=40)
    for number in range(3):
        recording.run(f"u{number}", "bash", f"output {number}\n" * 50, command=f"make {number}")
    recording.assistant(text("Read."))
    recording.user("Now rename them.", wait_ms=3_600_000)
    edits = (("a", "value7 ="), ("a", "value8 ="), ("b", "other7 ="), ("c", "nobody saw this"))
    for number, (file, old) in enumerate(edits):
        arguments = {"edits": [{"oldText": old, "newText": "seven ="}]}
        recording.assistant(call(f"e{number}", "edit", path=f"src/{file}.ts", **arguments))
        recording.result(f"e{number}", "edit", text(f"Successfully replaced 1 block(s). {number}"))
    recording.assistant(text("Done."))
    return recording


def test_each_loss_has_its_cause(tmp_path: Path) -> None:
    path = paused().write(tmp_path / "me__app__1.jsonl")
    found = find_losses(ReplayOptions(settings=IMPATIENT), path)
    assert found.edits == 4
    assert [(Path(each.path).name, *each[4:]) for each in found.lost] == [
        ("a.ts", "cold", 3601.0, "read", "known", False),
        ("a.ts", "cold", 3601.0, "read", "known", True),
        ("b.ts", "cold", 3601.0, "read", "unknown", False),
        ("c.ts", "never in view", 0.0, "", "unknown", False),
    ]
    assert {each.gone_at for each in found.lost[:3]} == {7}
    assert not find_losses(ReplayOptions(policy="keep-all"), path).lost[:-1]


def test_a_set_is_told_by_cause(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paused().write(tmp_path / "me__app__1.jsonl")
    settings = [argument for each in IMPATIENT for argument in ("--set", each)]
    assert main(["--list", *settings, str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].endswith("4 of 4 edits lost")
    assert any(line.split()[:3] == ["2", "1", "cold"] for line in lines)
    assert sum(line.startswith("me__app__1 call") for line in lines) == 4
