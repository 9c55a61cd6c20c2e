"""What is released: one version, the same bytes from anywhere, and what it stands on."""

from __future__ import annotations

import json
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from foredeck import __version__
from foredeck_bench.release import (
    Bill,
    Commit,
    VersionsDiffer,
    build,
    build_elsewhere,
    export,
    hashes,
    head_of,
    licence_of,
    licence_page,
    npm_bill,
    python_bill,
    the_version,
    versions,
)

COMMIT = Commit("", 1_770_000_000)


def test_python_and_npm_package_have_one_version(checkout: Path) -> None:
    assert the_version(checkout) == __version__
    assert len(versions(checkout)) == 4


def test_another_version_in_one_file_is_named(checkout: Path, tmp_path: Path) -> None:
    for file in versions(checkout):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text((checkout / file).read_text())
    package = tmp_path / "package.json"
    package.write_text(package.read_text().replace(__version__, "9.9.9", 1))
    with pytest.raises(VersionsDiffer, match=r"package.json says 9\.9\.9"):
        the_version(tmp_path)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small repository with what a package of foredeck is built by."""
    checkout = Path(__file__).resolve().parents[2]
    root = tmp_path_factory.mktemp("repository")
    for file in ("pyproject.toml", "package.json", "README.md", "LICENSE", "CHANGELOG.md"):
        (root / file).write_text((checkout / file).read_text())
    for file in ("ts-shim/index.ts", "ts-shim/tools.json", "python/foredeck/__init__.py"):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text((checkout / file).read_text())
    (root / "xtdb").mkdir()
    (root / "xtdb" / "node.clj").write_text("; a node\n")
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "first"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    (root / "python/foredeck/secret.py").write_text("KEY = 1\n")
    return root


def test_two_builds_have_equal_hashes_and_only_what_is_committed(
    repository: Path, tmp_path: Path
) -> None:
    commit = head_of(repository)
    (tmp_path / "tree").mkdir()
    export(repository, commit, tmp_path / "tree")
    files = build(tmp_path / "tree", commit, tmp_path / "out")
    assert hashes(files) == build_elsewhere(repository, commit)
    names = {path.suffix: path for path in files}
    with zipfile.ZipFile(names[".whl"]) as packed:
        assert "foredeck/__init__.py" in packed.namelist()
        assert "foredeck/secret.py" not in packed.namelist()
    with tarfile.open(names[".tgz"]) as packed:
        assert "package/ts-shim/index.ts" in packed.getnames()
        assert "package/python/foredeck/secret.py" not in packed.getnames()
    assert names[".gz"].name == f"foredeck-{__version__}.tar.gz"


@pytest.fixture(scope="module")
def bill() -> Bill:
    """Of the Python package."""
    return python_bill(Path(__file__).resolve().parents[2], COMMIT)


def test_the_bill_has_what_runs_with_its_licences_and_no_builders(bill: Bill) -> None:
    parts = {part["name"].lower(): part for part in bill["components"]}
    assert {"pydantic", "pydantic_core", "httpx", "starlette", "mcp", "jgo"} <= parts.keys()
    assert not {"pytest", "mypy", "ruff", "hatchling", "mkdocs", "hypothesis"} & parts.keys()
    assert [name for name, part in parts.items() if licence_of(part) == "unknown"] == []
    refs = {part["bom-ref"] for part in bill["components"]}
    for entry in bill["dependencies"]:
        assert set(entry["dependsOn"]) <= refs
    assert bill["metadata"]["timestamp"] == "2026-02-02T02:40:00Z"
    page = licence_page([bill])
    assert f"pydantic {parts['pydantic']['version']}: MIT" in page
    assert "Permission is hereby granted" in page


def test_the_npm_package_brings_nothing_along(checkout: Path) -> None:
    bill = npm_bill(checkout, COMMIT)
    assert bill["metadata"]["component"]["name"] == "pi-foredeck"
    assert bill["components"] == []
    assert "dependencies" not in json.loads((checkout / "package.json").read_text())
