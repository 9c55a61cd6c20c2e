"""A small `foredeck bench storm`: after every phase the store holds what is on the disk."""

from __future__ import annotations

import json
import shutil
import sys

import pytest

from foredeck.cli.main import main

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("git") is None, reason="needs Linux and git"
)

PHASES = [
    "storm, reader stopped",
    "git commit",
    "git checkout one",
    "git checkout two",
    "editors",
    "installer",
    "no watches left",
]


def test_no_final_state_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--written", "8000", "--tracked", "200", "--idle", "1"]
    assert main(["bench", "storm", *small, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [phase["name"] for phase in found["phases"]] == PHASES
    assert (found["wrong"], found["tracked"]) == (0, 200)
    assert found["written"] > 8000
    note = found["phases"][-1]["note"]
    assert "compared every" in note or "not applicable" in note
