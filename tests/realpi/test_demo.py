"""`scripts/demo`, as far as it goes without a terminal: the story on the real Pi."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from foredeck.bench.demo import copy_sample
from foredeck.bench.demo_table import plain_calls
from foredeck.bench.scripted.pi_process import VERSIONS, checkout_pi


@pytest.fixture
def demo(checkout: Path, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """The demo's whole run, with its scratch folder below `tmp_path`."""
    if checkout_pi(checkout, VERSIONS[0]) is None:
        pytest.skip(f"Pi {VERSIONS[0]} is not installed: run scripts/setup")
    return subprocess.run(
        [sys.executable, "-m", "foredeck.bench.demo"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path), "HOME": str(tmp_path)},
        check=False,
    )


def test_the_demo_tells_its_story(demo: subprocess.CompletedProcess[str], tmp_path: Path) -> None:
    assert demo.returncode == 0, demo.stderr
    lines = demo.stdout.rstrip().split("\n")
    assert re.fullmatch(r"foredeck demo: 24 model calls; .* \(\d+% saved\)\.", lines[-1])
    table = [line for line in lines if re.match(r" +\d+ +[\d,]+ +[\d,]+ +\d", line)]
    assert [int(row.split()[0]) for row in table] == list(range(1, 25))
    story = "\n".join(table)
    for fact in ("not sent twice", "the window fills up", "back in full", "@6 pinned"):
        assert fact in story
    (scratch,) = tmp_path.glob("foredeck-demo-*")
    assert (scratch / "repo" / "CHANGES.md").exists()
    (session,) = (scratch / "agent" / "sessions").rglob("*.jsonl")
    assert [call.answer for call in plain_calls(session, 0)][15:17] == [
        "activate toolu_first_test_run",
        "pin stocktake/pricing.py",
    ]


def test_the_sample_fails_until_it_is_mended(tmp_path: Path) -> None:
    copy_sample(tmp_path / "repo")

    def tests_of_the_sample() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-B", "-m", "unittest"]
        return subprocess.run(
            command, cwd=tmp_path / "repo", capture_output=True, text=True, check=False
        )

    assert "FAILED (failures=2)" in tests_of_the_sample().stderr
    pricing = tmp_path / "repo" / "stocktake" / "pricing.py"
    pricing.write_text(pricing.read_text().replace("quantity > tier", "quantity >= tier"))
    assert tests_of_the_sample().returncode == 0
