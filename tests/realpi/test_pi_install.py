"""Installed as users install it: from a checkout, and from the packed tarball."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from foredeck_bench.scripted import ScriptedModel, call
from harness import Pi, one_version
from observed import calls_of, last_result, notified, stored

INSTALLER_VARIABLES = ("PIP_", "UV_", "SSL_CERT_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
"""What a user sets to reach a package registry: the installers must see it."""


def pi_command(pi: Pi, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one of Pi's own commands, such as `pi install`."""
    return subprocess.run(
        [*pi.install.command, *arguments],
        cwd=pi.repo,
        env=pi.workspace.environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def serve(pi: Pi) -> ScriptedModel:
    """A model that runs one command with an output that is long enough for a handle."""
    return pi.serve([call("bash", command="seq 300"), "done"])


def test_a_checkout_is_installed_and_removed_again(pi: Pi, checkout: Path) -> None:
    serve(pi)
    installed = pi_command(pi, "install", str(checkout))
    assert installed.returncode == 0, installed.stderr
    (package,) = json.loads((pi.workspace.agent_dir / "settings.json").read_text())["packages"]
    assert (pi.workspace.agent_dir / package).resolve() == checkout
    with_foredeck(pi)
    removed = pi_command(pi, "remove", str(checkout))
    assert removed.returncode == 0, removed.stderr
    settings = pi.workspace.agent_dir / "settings.json"
    kept = settings.read_text()
    model = serve(pi)
    settings.write_text(kept)
    assert pi.print("go").code == 0
    assert not last_result(model.requests[-1]).startswith("@")
    assert "activate" not in model.requests[-1].request.tools


def with_foredeck(pi: Pi) -> None:
    """Plain `pi -p` must have foredeck in it now."""
    settings = pi.workspace.agent_dir / "settings.json"
    kept = settings.read_text()
    model = serve(pi)
    settings.write_text(kept)
    ended = pi.print("go", environment=installer_environment())
    assert (ended.code, ended.stderr, ended.stdout.strip()) == (0, "", "done")
    assert last_result(model.requests[-1]).startswith("@")
    assert model.violations == []
    with stored(pi) as store:
        assert len(calls_of(store)) == 2


def installer_environment() -> dict[str, str]:
    """The variables of this process that lead to a package registry."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.upper().startswith(INSTALLER_VARIABLES)
    }


@pytest.fixture
def tarball(checkout: Path, tmp_path: Path) -> Path:
    """What `npm pack` makes of this checkout."""
    if shutil.which("npm") is None:
        pytest.skip("needs npm")
    packed = subprocess.run(
        ["npm", "pack", "--silent", "--pack-destination", str(tmp_path)],
        cwd=checkout,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert packed.returncode == 0, packed.stderr
    return tmp_path / packed.stdout.strip().splitlines()[-1]


def test_the_tarball_holds_what_runs_and_nothing_else(tarball: Path) -> None:
    with tarfile.open(tarball) as archive:
        names = {name.removeprefix("package/") for name in archive.getnames()}
    for needed in (
        "package.json",
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "ts-shim/index.ts",
        "ts-shim/tools.json",
        "python/foredeck/engine/engine.py",
    ):
        assert needed in names
    folders = {name.split("/")[0] for name in names if "/" in name}
    assert folders <= {"ts-shim", "python", "docs", "xtdb"}
    assert not [name for name in names if "test" in name.split("/") or name.endswith(".pyc")]
    assert not [name for name in names if name.startswith("python/foredeck_bench")]


@pytest.mark.long
@one_version
def test_the_tarball_sets_its_engine_up_and_runs(pi: Pi, tarball: Path, tmp_path: Path) -> None:
    """First use: Pi works at once and says so; the engine is built outside the package."""
    with tarfile.open(tarball) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    package = tmp_path / "unpacked" / "package"
    serve(pi)
    installed = pi_command(pi, "install", str(package))
    assert installed.returncode == 0, installed.stderr
    before = files_in(package)
    settings = (pi.workspace.agent_dir / "settings.json").read_text()

    model = serve(pi)
    (pi.workspace.agent_dir / "settings.json").write_text(settings)
    unready = pi.print("go", environment=installer_environment())
    assert (unready.code, unready.stdout.strip(), model.violations) == (0, "done", [])
    assert "foredeck: " in unready.stderr

    ready = pi.print("/foredeck setup", environment=installer_environment(), timeout_s=280)
    if "foredeck's engine is set up" not in ready.stdout + ready.stderr:
        pytest.skip(f"the engine cannot be installed here: {ready.stderr.strip()[-300:]}")
    with_foredeck(pi)
    assert files_in(package) == before
    (engine,) = [p for p in (pi.workspace.foredeck_home / "engines").iterdir() if p.is_dir()]
    assert (engine / "venv").is_dir()


def files_in(folder: Path) -> set[str]:
    """All files below a folder: the package must stay as it was installed."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_of_two_copies_the_second_stands_back(pi: Pi, checkout: Path, tmp_path: Path) -> None:
    """Installed, and loaded from a checkout too: Pi would not start with the same tools twice."""
    copy = tmp_path / "copy"
    # What Python compiles beside its sources comes and goes while other tests run.
    compiled = shutil.ignore_patterns("__pycache__")
    for part in ("ts-shim", "python"):
        shutil.copytree(checkout / part, copy / part, ignore=compiled)
    for file in ("package.json", "pyproject.toml"):
        shutil.copy(checkout / file, copy / file)
    for link in (".venv", "node_modules"):
        (copy / link).symlink_to(checkout / link)
    model = pi.serve(
        [call("bash", command="seq 300"), "done", call("bash", command="seq 300"), "end"]
    )
    rpc = pi.rpc(foredeck=True, extensions=[copy])
    rpc.prompt("go")
    assert len(rpc.engines()) == 1
    rpc.send("new_session")
    rpc.prompt("go on")
    (told,) = set(notified(rpc))  # once in each session
    assert f"{copy}/ts-shim/index.ts does nothing beside {checkout}/ts-shim/index.ts" in told
    assert model.violations == []
    for request in (model.requests[1], model.requests[-1]):
        assert last_result(request).startswith("@")
        assert request.request.tools.count("activate") == 1
