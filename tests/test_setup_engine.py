"""Setting up the engine's Python environment, with a package that needs nothing fetched."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tomllib
import types
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import setup_engine

MAIN = """import sys

def main():
    try:
        import needed
    except ImportError:
        needed = None
    print("engine", *sys.argv[1:], needed and needed.WORD)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package like this one, in a folder with signs in its name that shells and URLs know."""
    root = tmp_path / "it's a #package"
    (root / "python" / "foredeck" / "cli").mkdir(parents=True)
    (root / "wheels").mkdir()
    shutil.copy(setup_engine.__file__, root / "python")
    (root / "requirements.lock").write_text("")
    (root / "tools.json").write_text("[]")
    (root / "pyproject.toml").write_text(
        '[project]\nname = "foredeck"\nversion = "1.2.3"\nrequires-python = ">=3.11"\n'
        '[project.scripts]\nforedeck = "foredeck.cli.main:main"\n'
        '[tool.hatch.build.targets.wheel]\npackages = ["python/foredeck"]\n'
        '[tool.hatch.build.targets.wheel.force-include]\n"tools.json" = "foredeck/tools.json"\n'
    )
    for name, text in {"__init__.py": "", "cli/__init__.py": "", "cli/main.py": MAIN}.items():
        (root / "python" / "foredeck" / name).write_text(text)
    return root


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the engine is set up."""
    return tmp_path / "it's a state" / "engines" / "1.2.3"


def begin(package: Path, folder: Path, *flags: str) -> subprocess.Popen[str]:
    script = package / "python" / "setup_engine.py"
    words = [sys.executable, "-I", str(script), str(folder), *flags]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)


def said(process: subprocess.Popen[str]) -> list[dict[str, str]]:
    output, _ = process.communicate(timeout=250)
    return [json.loads(line) for line in output.splitlines()]


def needs(package: Path, digest: str | None = None) -> None:
    """Lock a wheel that lies in `wheels`, by its hash or by this one."""
    wheel = package / "wheels" / "needed-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr("needed.py", "WORD = 'with what it needs'\n")
        info = "needed-1.0.dist-info"
        packed.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: needed\nVersion: 1.0\n")
        packed.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        packed.writestr(f"{info}/RECORD", "")
    digest = digest or hashlib.sha256(wheel.read_bytes()).hexdigest()
    (package / "requirements.lock").write_text(f"needed==1.0 \\\n    --hash=sha256:{digest}\n")


def launched(folder: Path) -> str:
    """What the command in `bin` prints."""
    command = folder.parent.parent / "bin" / "foredeck"
    return subprocess.run([command, "x"], capture_output=True, text=True, check=True).stdout


@pytest.mark.long
def test_of_two_at_once_one_works_and_the_other_waits(package: Path, folder: Path) -> None:
    needs(package)
    both = [said(each) for each in [begin(package, folder), begin(package, folder)]]
    made = [lines for lines in both if {"progress": "making a Python environment"} in lines]
    assert len(made) == 1
    assert [lines[-1] for lines in both] == [{"python": str(setup_engine.python_of(folder))}] * 2
    assert launched(folder) == "engine x with what it needs\n"
    assert said(begin(package, folder)) == [both[0][-1]]
    assert sorted(path.name for path in folder.iterdir()) == ["engine.json", "venv"]


@pytest.mark.long
def test_a_killed_set_up_is_made_again(package: Path, folder: Path) -> None:
    process = begin(package, folder)
    assert "making" in process.stdout.readline()
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert not (folder / "engine.json").exists()
    (folder / "venv" / "lib").mkdir(parents=True, exist_ok=True)
    (folder / "venv" / "lib" / "left.py").touch()
    assert "python" in said(begin(package, folder))[-1]
    assert not (folder / "venv" / "lib" / "left.py").exists()
    assert launched(folder) == "engine x None\n"


@pytest.mark.long
def test_uv_sets_it_up_where_it_is_there(package: Path, folder: Path) -> None:
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if uv is None:
        pytest.skip("needs uv")
    needs(package)
    assert "python" in said(begin(package, folder, "--uv", uv))[-1]
    assert launched(folder) == "engine x with what it needs\n"


def test_a_package_with_another_hash_is_not_installed(package: Path, folder: Path) -> None:
    needs(package, digest="0" * 64)
    assert said(begin(package, folder))[-1] == {
        "error": "foredeck's engine could not be set up: a package is not the one that foredeck "
        "was tested with. /foredeck setup tries again."
    }
    assert not (folder / "engine.json").exists()
    assert not (folder.parent.parent / "bin").exists()


def test_what_is_installed_and_does_not_start_is_no_engine(package: Path, folder: Path) -> None:
    (package / "python" / "foredeck" / "cli" / "main.py").write_text("raise OSError('a bug')")
    error = said(begin(package, folder))[-1]["error"]
    assert error.endswith("it is installed but does not start: OSError: a bug")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("ERROR: Could not install: [Errno 28] No space left on device", "the disk is full"),
        ("WARNING: ...: Temporary failure in name resolution", "check the network"),
        ("ERROR: No matching distribution found for pydantic==2.14.4", "check the network"),
        ("error: client error (Connect): dns error: failed to lookup", "check the network"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", "not the one that foredeck was tested"),
        ("error: Hash mismatch for `pydantic==2.14.4`", "not the one that foredeck was tested"),
        ("something\nelse went wrong\n", "else went wrong"),
        ("", "no output"),
    ],
)
def test_a_failure_says_what_mends_it(words: str, text: str) -> None:
    explained = setup_engine.explained(words)
    assert text in explained
    assert explained.endswith("/foredeck setup tries again.")


def test_without_a_pip_that_reaches_others_the_environment_gets_its_own(
    package: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where that cannot be had either, as on Debian without `python3-venv`, the user is told."""
    from importlib import util

    reaching = [setup_engine.reaches_others(each) for each in ("22.2.2", "22.3", "26.0.1")]
    assert reaching == [False, True, True]
    missing, find = {"pip"}, util.find_spec
    monkeypatch.setattr(
        util, "find_spec", lambda name, *rest: None if name in missing else find(name, *rest)
    )
    monkeypatch.setattr(setup_engine, "BUNDLED", package / "wheels")
    needs(package)
    folder.mkdir(parents=True)
    setup_engine.with_pip(folder, package / "requirements.lock")
    code = "import needed; print(needed.WORD)"
    done = subprocess.run([setup_engine.python_of(folder), "-c", code], capture_output=True)
    assert done.stdout == b"with what it needs\n"
    missing.add("ensurepip")
    with pytest.raises(setup_engine.SetupFailed, match="sudo apt install python3-venv"):
        setup_engine.with_pip(folder, package / "requirements.lock")


def test_a_python_that_is_too_old_leaves_it_to_another(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(setup_engine.sys, "version_info", (3, 9, 6))
    assert setup_engine.main([str(folder)]) == setup_engine.TOO_OLD
    assert (capsys.readouterr().out, folder.parent.exists()) == ("", False)


def test_an_engine_that_nothing_has_started_for_a_month_goes(folder: Path) -> None:
    for name, days in {"old": 31, "used": 29, folder.name: 90}.items():
        marker = folder.parent / name / "engine.json"
        marker.parent.mkdir(parents=True)
        marker.touch()
        for path in (marker, marker.parent):
            os.utime(path, (0, path.stat().st_mtime - days * 24 * 60 * 60))
    setup_engine.remove_unused(folder)
    assert sorted(path.name for path in folder.parent.iterdir()) == sorted(["used", folder.name])


def test_what_windows_has_otherwise(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup_engine, "WINDOWS", True)
    assert setup_engine.python_of(folder) == folder / "venv" / "Scripts" / "python.exe"
    folder.mkdir(parents=True)
    setup_engine.write_launcher(folder)
    command = folder.parent.parent / "bin" / "foredeck.cmd"
    assert command.read_bytes().decode() == f'@"{folder}/venv/Scripts/foredeck.exe" %*\r\n'

    held = [True]

    def locking(_: int, mode: int, size: int) -> None:
        assert (mode, size) == (2, 1)
        if held:
            raise PermissionError(13, "held by another process")

    fake = types.SimpleNamespace(locking=locking, LK_NBLCK=2)
    monkeypatch.setitem(sys.modules, "msvcrt", fake)
    assert not setup_engine.take(0)
    held.clear()
    assert setup_engine.take(0)


def test_a_file_system_without_locks_keeps_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    def flock(*_: int) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", flock)
    assert setup_engine.take(0)


def test_the_lock_file_has_what_foredeck_needs_with_its_hashes(checkout: Path) -> None:
    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    entries = (checkout / "requirements.lock").read_text().replace("\\\n", " ").splitlines()
    entries = [entry for entry in entries if not entry.startswith("#")]
    assert all("--hash=sha256:" in entry for entry in entries)
    locked = {}
    for entry in entries:
        requirement = Requirement(entry.split(" --hash")[0])
        locked[canonicalize_name(requirement.name)] = str(requirement.specifier)[2:]
    wanted = [Requirement(line) for line in project["dependencies"]]
    wrong = [
        str(each)
        for each in wanted
        if locked.get(canonicalize_name(each.name)) not in each.specifier
    ]
    assert wrong == [], "scripts/release --lock makes requirements.lock anew"
