"""What an installed foredeck has: all that users run, and nothing that only its builders need."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from processes import run_program

HARNESS = "foredeck_bench"


def run_without_harness(code: str) -> subprocess.CompletedProcess[str]:
    """Run Python code where the harness cannot be imported, as in an installed package."""
    hidden = f"import sys; sys.modules[{HARNESS!r}] = None; {code}"
    return run_program(sys.executable, "-c", hidden, timeout=120)


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    main = "from foredeck.cli.main import main"
    return run_without_harness(f"{main}; sys.exit(main({list(arguments)!r}))")


def test_bench_is_listed_only_where_it_can_run() -> None:
    listed = command("--help")
    assert (listed.returncode, "bench" in listed.stdout) == (0, False)
    assert all(f"\n  {name} " in listed.stdout for name in ("cost", "replay", "engine"))


@pytest.mark.parametrize("name", ["bench", "bench crash"])
def test_bench_says_where_it_can_run(name: str) -> None:
    asked = command(*name.split())
    assert (asked.returncode, asked.stdout) == (2, "")
    assert "run it in a checkout of the repository" in asked.stderr


def test_the_wheel_leaves_the_harness_out(checkout: Path, tmp_path: Path) -> None:
    project = tomllib.loads((checkout / "pyproject.toml").read_text())
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"][0] == "python/foredeck"
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(tmp_path)]
    built = run_program(*pip, str(checkout), timeout=280)
    if built.returncode != 0:
        pytest.skip("hatchling, which makes the wheel, cannot be had here")
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "foredeck_lab/replay_command.py" in names
    assert [name for name in names if HARNESS in name] == []
