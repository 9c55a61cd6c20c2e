"""`scripts/demo` as far as it goes without a terminal: the story on the real Pi, on both stores."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from foredeck.cli.main import main
from foredeck.model.call_values import CHARS_PER_TOKEN
from foredeck.model.own_tools import DEFAULT_FACILITIES, definition_chars
from foredeck_bench.demo.run import copy_sample, demo_store
from foredeck_bench.demo.story import PLAN
from foredeck_bench.demo.table import answers_in
from foredeck_bench.scripted.pi_process import VERSIONS, checkout_pi
from foredeck_xtdb.database.adapter import open_xtdb
from foredeck_xtdb.node import own_node_folder, start, stop
from foredeck_xtdb.runtime import Runtime
from processes import run_program

PATIENT = {"FOREDECK_TEST_CONSTANTS": "1", "FOREDECK_XTDB__TIMEOUT_MS": "60000"}
"""A node that is slow is none that is away."""


def run_demo(checkout: Path, scratch: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """One whole run of the script, with its scratch folder in `scratch`."""
    if checkout_pi(checkout, VERSIONS[0]) is None:
        pytest.skip(f"Pi {VERSIONS[0]} is not installed: run scripts/setup")
    scratch.mkdir()
    base = {"PATH": os.environ["PATH"], "TMPDIR": str(scratch), "HOME": str(scratch)}
    return run_program(
        checkout / "scripts" / "demo",
        stdin=subprocess.DEVNULL,
        env={**base, **environment, **PATIENT},
    )


def table_of(demo: subprocess.CompletedProcess[str]) -> list[str]:
    """The table's rows, after a run that has ended well."""
    assert demo.returncode == 0, demo.stdout[-3000:] + demo.stderr
    lines = demo.stdout.rstrip().split("\n")
    assert max(map(len, (line for line in lines if "/" not in line))) <= 80
    return [line for line in lines if re.match(r" +\d+ +[\d,]+ +[\d,]+ +\d+  ", line)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for all demos: paths of equal length make equal tables."""
    return tmp_path_factory.mktemp("demos")


@pytest.fixture(scope="module")
def on_sqlite(checkout: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """The demo as it is without any setting."""
    return run_demo(checkout, folder / "sqlite")


def test_the_demo_tells_its_story(
    on_sqlite: subprocess.CompletedProcess[str], folder: Path
) -> None:
    table = table_of(on_sqlite)
    assert [int(row.split()[0]) for row in table] == list(range(1, CALLS + 1))
    plain, ours = (int(cell.replace(",", "")) for cell in table[0].split()[1:3])
    assert ours - plain == pytest.approx(
        definition_chars(*DEFAULT_FACILITIES) / CHARS_PER_TOKEN, abs=4
    ), "what our tools take"
    story = "\n".join(table)
    for fact in ("not sent twice", "cache expired", "back in full", "@6 pinned"):
        assert fact in story
    assert "foredeck cost tests/recordings/long.jsonl  the same" in on_sqlite.stdout
    (scratch,) = (folder / "sqlite").glob("foredeck-demo-*")
    assert (scratch / "repo" / "CHANGES.md").exists()
    session, second = sorted((scratch / "agent" / "sessions").rglob("*.jsonl"))
    assert answers_in(session)[22:24] == ["activate @4", "pin stocktake/pricing.py"]
    found = second.read_text()
    assert "stocktake/pricing.py" in found
    assert "is closed" in found, "what the first session has done is not claimed again"
    assert "1 ready, 0 blocked" in found
    assert f'closed the task "{PLAN[0]}"' in on_sqlite.stdout


def test_the_demo_ends_with_the_figure_that_cost_prints(
    on_sqlite: subprocess.CompletedProcess[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (scratch,) = (folder / "sqlite").glob("foredeck-demo-*")
    name = re.findall(r"foredeck cost (\S{13})", on_sqlite.stdout)[0]
    assert main(["cost", name, "--home", str(scratch / "foredeck")]) == 0
    figure = capsys.readouterr().out.split("\n")[0]
    assert f"\nforedeck demo:\n{figure}\n" in on_sqlite.stdout
    assert f"over {CALLS} calls" in figure
    (share,) = re.findall(r"saved \((\d+)%\)", figure)
    assert 30 < int(share) < 60, "a figure that tells something, as on recorded sessions"


@pytest.fixture
def home(runtime: Runtime, tmp_path: Path) -> Iterator[Path]:
    """A user's state folder, in which the XTDB node is installed."""
    (tmp_path / "xtdb").mkdir()
    (tmp_path / "xtdb" / runtime.folder.name).symlink_to(runtime.folder)
    yield tmp_path
    stop(own_node_folder(tmp_path))


HELD = r"XTDB holds \d+ transactions: (\d+) objects in (\d+) versions and \d+ blobs,\nall equal "


CALLS, SECOND_SESSION = 31, 7
"""Calls of the first session, and of the one that finds what it has done."""


def test_the_demo_on_the_node_that_runs(
    checkout: Path,
    folder: Path,
    home: Path,
    runtime: Runtime,
    on_sqlite: subprocess.CompletedProcess[str],
) -> None:
    node, *_ = start(own_node_folder(home), runtime, topology="memory")
    demo = run_demo(checkout, folder / "xtdb-1", FOREDECK_HOME=str(home), FOREDECK_STORE="xtdb")
    assert table_of(demo) == table_of(on_sqlite)
    assert re.search(HELD, demo.stdout), demo.stdout
    assert own_node_folder(home).running() == node
    (namespace,) = re.findall(r"namespace (demo-\w+)", demo.stdout)
    with closing(
        open_xtdb(node.url, token=own_node_folder(home).token(), namespace=namespace)
    ) as store:
        assert len(store.find("call")) == CALLS + SECOND_SESSION


def test_the_demo_starts_a_node_where_none_runs_and_ends_it(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOREDECK_HOME", str(home))
    monkeypatch.setenv("FOREDECK_STORE", "xtdb")
    node = own_node_folder(tmp_path / "demo")
    with demo_store(tmp_path / "demo") as used:
        assert used.config.store == "xtdb"
        assert used.config.xtdb.namespace.startswith("demo-")
        assert node.running() is not None
    assert node.is_free()
    assert own_node_folder(home).running() is None


def test_the_demo_says_that_no_node_is_installed(
    checkout: Path, folder: Path, tmp_path: Path
) -> None:
    demo = run_demo(checkout, folder / "none-1", FOREDECK_HOME=str(tmp_path), FOREDECK_STORE="xtdb")
    assert demo.returncode == 1
    assert "foredeck xtdb install" in demo.stderr


def test_the_sample_fails_until_it_is_mended(tmp_path: Path) -> None:
    copy_sample(tmp_path / "repo")

    def tests_of_the_sample() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-B", "-m", "unittest"]
        return run_program(*command, cwd=tmp_path / "repo")

    assert "FAILED (failures=2)" in tests_of_the_sample().stderr
    pricing = tmp_path / "repo" / "stocktake" / "pricing.py"
    pricing.write_text(pricing.read_text().replace("quantity > tier", "quantity >= tier"))
    assert tests_of_the_sample().returncode == 0
