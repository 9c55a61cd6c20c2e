"""`scripts/release`: builds wheel, sdist and npm tarball from a commit, twice, and compares.

Nothing of the machine is in them. Bills of materials (CycloneDX) and others' licences go with them.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


class BuildFailed(Exception):
    """A build tool has failed; its words follow."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit with its time, which all files of a package have."""

    hash: str
    seconds: int


def head_of(root: Path) -> Commit:
    text = run(["git", "log", "-1", "--format=%H %ct"], root, {}).decode()
    hash, seconds = text.split()
    return Commit(hash, int(seconds))


def extract(tar: tarfile.TarFile, folder: Path | str) -> None:
    """Extracts an archive with the filter for data, which Python 3.11.2 does not have."""
    tar.extraction_filter = getattr(tarfile, "data_filter", None)
    tar.extractall(folder)


def export(root: Path, commit: Commit, target: Path) -> None:
    packed = run(["git", "archive", "--format=tar", commit.hash], root, {})
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        extract(tar, target)


def build(tree: Path, commit: Commit, out: Path) -> list[Path]:
    """Wheel, sdist and npm tarball of an exported tree, without network. Raises `BuildFailed`."""
    out.mkdir(parents=True, exist_ok=True)
    variables = {"SOURCE_DATE_EPOCH": str(commit.seconds), "PYTHONHASHSEED": "0"}
    run([sys.executable, "-m", "hatchling", "build", "-d", str(out)], tree, variables)
    pack = ["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", str(out)]
    run(pack, tree, variables)
    return sorted(path for path in out.iterdir() if path.suffix in (".whl", ".gz", ".tgz"))


def hashes(files: list[Path]) -> dict[str, str]:
    """SHA-256 by name."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def build_elsewhere(root: Path, commit: Commit) -> dict[str, str]:
    """Hashes of a second build in other surroundings."""
    other = {"TZ": "Pacific/Apia", "LC_ALL": "C"}
    before, umask = {name: os.environ.get(name) for name in other}, os.umask(0o077)
    os.environ.update(other)
    try:
        with tempfile.TemporaryDirectory(prefix="another-folder-") as name:
            tree = Path(name) / "deeper" / "tree"
            tree.mkdir(parents=True)
            export(root, commit, tree)
            return hashes(build(tree, commit, Path(name) / "out"))
    finally:
        os.umask(umask)
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def run(words: list[str], folder: Path, variables: dict[str, str]) -> bytes:
    """What a program prints. Raises `BuildFailed`."""
    result = subprocess.run(
        words, cwd=folder, env={**os.environ, **variables}, capture_output=True, check=False
    )
    if result.returncode:
        raise BuildFailed(f"{' '.join(words)}:\n{result.stdout.decode()}{result.stderr.decode()}")
    return result.stdout


class VersionsDiffer(Exception):
    """The files do not name one version."""


def versions(root: Path) -> dict[str, str]:
    """The version by file."""
    package = json.loads((root / "package.json").read_text())
    lock = json.loads((root / "package-lock.json").read_text())
    module = (root / "python/foredeck/version.py").read_text()
    match = re.search(r'^__version__ = "(.+)"$', module, re.MULTILINE)
    return {
        "pyproject.toml": tomllib.loads((root / "pyproject.toml").read_text())["project"][
            "version"
        ],
        "python/foredeck/version.py": match[1] if match else "",
        "package.json": package["version"],
        "package-lock.json": lock["packages"][""]["version"],
    }


def the_version(root: Path) -> str:
    """The one version. Raises `VersionsDiffer`."""
    by_file = versions(root)
    if len(set(by_file.values())) != 1:
        raise VersionsDiffer(", ".join(f"{file} says {value}" for file, value in by_file.items()))
    return by_file["pyproject.toml"]


LOCK = "requirements.lock"
HEAD = (
    "# What the engine needs, with all hashes, for every system and Python from 3.11 on.\n"
    "# Made from pyproject.toml by `scripts/release --lock`.\n"
)
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
"""The versions of Python whose wheels a bundle has."""


def write_lock(root: Path) -> None:
    """Make the lock file anew. Raises `BuildFailed`."""
    flags = ["--universal", "--python-version", PYTHONS[0], "--generate-hashes", "--upgrade"]
    silent = ["--no-emit-index-url", "--no-annotate", "--no-header", "--quiet"]
    uv = Path(sys.executable).with_name("uv")
    locked = run([str(uv), "pip", "compile", *flags, *silent, "pyproject.toml"], root, {})
    (root / LOCK).write_text(HEAD + locked.decode())


def bundle(out: Path, platforms: list[str]) -> Path:
    """Adds the lock file's wheels to the npm package; returns the tarball. Raises `BuildFailed`."""
    (packed,) = (path for path in out.glob("pi-foredeck-*.tgz") if "offline" not in path.name)
    with tempfile.TemporaryDirectory() as name:
        with tarfile.open(packed) as tar:
            extract(tar, name)
        package = Path(name) / "package"
        _collect(package, package / "wheels", platforms)
        target = packed.with_name(f"{packed.stem}-offline.tgz")
        with tarfile.open(target, "w:gz") as tar:
            tar.add(package, "package")
    return target


def _collect(package: Path, wheels: Path, platforms: list[str]) -> None:
    """Fetches wheels; those that are not published are built and locked."""
    lock = package / LOCK
    entries = re.split(r"^(?=[\w-]+==)", lock.read_text(), flags=re.MULTILINE)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    run([*pip, "wheel", "--no-deps", "-r", LOCK, "-w", str(wheels)], package, {})
    built: dict[str, str] = {}
    for wheel in wheels.iterdir():
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        if digest not in lock.read_text():
            built[canonicalize_name(wheel.name.split("-")[0])] = digest
            if not wheel.name.endswith("-none-any.whl"):
                raise BuildFailed(f"published without a wheel: {wheel.name}")
        elif platforms:
            wheel.unlink()
    published = package / "published.lock"
    published.write_text("".join(e for e in entries if e.split("==")[0] not in built))
    flags = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "-d", str(wheels)]
    for python in PYTHONS:
        for platform in platforms or [""]:
            where = ["--platform", platform] if platform else []
            fetch = [*pip, "download", *flags, "-r", str(published), "--python-version", python]
            run([*fetch, *where], package, {})
    published.unlink()
    with_built = [
        f"{entry.rstrip()} \\\n    --hash=sha256:{digest}\n" if digest else entry
        for entry in entries
        for digest in [built.get(entry.split("==")[0])]
    ]
    lock.write_text("".join(with_built))


BUILDERS = frozenset({"dev", "release"})
"""Extras that nobody needs who runs foredeck."""

CYCLONEDX = Path(__file__).parents[2] / ".cache" / "cyclonedx" / "bin" / "python"
"""Python of the environment that scripts/setup makes."""

NOT_DESCRIBED = "foredeck:not-installed-where-this-was-made"
"""A package that an extra needs."""

_LICENCE = re.compile(r"(licen[cs]e|copying|notice|authors)", re.IGNORECASE)

Bill = dict[str, Any]
"""A CycloneDX document as JSON."""


def python_bill(tree: Path, commit: Commit) -> Bill:
    """What the Python package needs to run, with installed extras. Raises `BuildFailed`."""
    tool = [str(CYCLONEDX), "-m", "cyclonedx_py", "environment", sys.executable]
    flags = ["--pyproject", str(tree / "pyproject.toml"), "--output-reproducible"]
    bill = _bill([*tool, *flags, "--no-validate"], tree, commit)
    always, extras = _requirements(tree)
    by_name: dict[str, str] = {
        canonicalize_name(part["name"]): part["bom-ref"] for part in bill["components"]
    }
    if missing := sorted({canonicalize_name(each.name) for each in always} - by_name.keys()):
        raise BuildFailed(f"not installed here, so not to be described: {', '.join(missing)}")
    needed = {by_name[name] for name in _needed([*always, *extras]) & by_name.keys()}
    root = bill["metadata"]["component"]["bom-ref"]
    bill["components"] = [part for part in bill["components"] if part["bom-ref"] in needed]
    bill["dependencies"] = [
        {**entry, "dependsOn": [ref for ref in entry.get("dependsOn", ()) if ref in needed]}
        for entry in bill["dependencies"]
        if entry["ref"] in needed or entry["ref"] == root
    ]
    bill["metadata"].setdefault("properties", []).extend(
        {"name": NOT_DESCRIBED, "value": name}
        for name in sorted({canonicalize_name(each.name) for each in extras} - by_name.keys())
    )
    return bill


def npm_bill(tree: Path, commit: Commit) -> Bill:
    flags = ["--sbom-format", "cyclonedx", "--omit", "dev", "--package-lock-only"]
    bill = _bill(["npm", "sbom", *flags], tree, commit)
    # npm names the folder that it stands in.
    bill["metadata"]["component"]["name"] = json.loads((tree / "package.json").read_text())["name"]
    return bill


def _bill(words: list[str], folder: Path, commit: Commit) -> Bill:
    bill: Bill = json.loads(run(words, folder, {"SOURCE_DATE_EPOCH": str(commit.seconds)}))
    bill.pop("serialNumber", None)
    build_time = datetime.fromtimestamp(commit.seconds, UTC)
    bill["metadata"]["timestamp"] = build_time.strftime("%Y-%m-%dT%H:%M:%SZ")
    return bill


def _requirements(tree: Path) -> tuple[list[Requirement], list[Requirement]]:
    project = tomllib.loads((tree / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    extras = [line for name in sorted(optional.keys() - BUILDERS) for line in optional[name]]
    return [*map(Requirement, project["dependencies"])], [*map(Requirement, extras)]


def _needed(requirements: list[Requirement]) -> set[str]:
    """Names of these packages and their needs; a bill would add those of extras."""
    requirements_found: set[tuple[str, str]] = set()
    ahead = [(each, "") for each in requirements]
    while ahead:
        requirement, extra = ahead.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        for option in ("", *requirement.extras):
            key = (canonicalize_name(requirement.name), option)
            if key not in requirements_found:
                requirements_found.add(key)
                ahead.extend((each, option) for each in _requires(requirement.name))
    return {name for name, _ in requirements_found}


def _requires(name: str) -> list[Requirement]:
    try:
        return [Requirement(line) for line in distribution(name).requires or ()]
    except PackageNotFoundError:
        return []


def not_described(bill: Bill) -> list[str]:
    """What extras need without a description."""
    properties = bill["metadata"].get("properties", ())
    return [each["value"] for each in properties if each["name"] == NOT_DESCRIBED]


def licence_page(bills: Iterable[Bill]) -> str:
    """Name, version and licence of each component, then the texts."""
    parts = [part for bill in bills for part in bill["components"]]
    parts.sort(key=lambda part: (part["name"].lower(), part["version"]))
    lines = [f"{part['name']} {part['version']}: {licence_of(part)}" for part in parts]
    texts = [
        f"{'=' * 72}\n{part['name']} {part['version']}, {name}\n{'=' * 72}\n\n{text.strip()}\n"
        for part in parts
        for name, text in _texts(part["name"])
    ]
    head = (
        "Software of others that foredeck needs to run. None of it is in the packages themselves."
    )
    return "\n".join([head, "", *lines, "", *texts])


def licence_of(part: Bill) -> str:
    declared = [
        entry.get("expression") or entry["license"].get("id") or entry["license"].get("name")
        for entry in part.get("licenses", ())
    ]
    return ", ".join(sorted(filter(None, declared))) or "unknown"


def _texts(name: str) -> Iterator[tuple[str, str]]:
    for path in sorted(distribution(name).files or (), key=str):
        if path.parts[0].endswith(".dist-info") and _LICENCE.match(path.name):
            yield path.name, path.read_text(encoding="utf-8")


ROOT = Path(__file__).resolve().parents[2]


def main(argv: list[str] | None = None) -> int:
    """Build into the folder that the command line names; gives the exit code."""
    parser = argparse.ArgumentParser(prog="scripts/release", description=__doc__)
    parser.add_argument("--out", metavar="DIR", type=Path, default=ROOT / "dist")
    parser.add_argument("--bundle", metavar="PLATFORM", nargs="*")
    parser.add_argument("--lock", action="store_true")
    args = parser.parse_args(argv)
    out = args.out.absolute()
    try:
        if args.lock:
            write_lock(ROOT)
            return 0
        status = release(out)
        if args.bundle is not None:
            print(bundle(out, args.bundle))
        return status
    except (BuildFailed, VersionsDiffer) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1


def release(out: Path) -> int:
    """Builds the checked-out commit into the folder `out`.

    Returns 1 if a second build differs. Raises `BuildFailed`, `VersionsDiffer`.
    """
    commit = head_of(ROOT)
    with tempfile.TemporaryDirectory() as name:
        tree = Path(name) / "tree"
        tree.mkdir()
        export(ROOT, commit, tree)
        version = the_version(tree)
        print(f"foredeck {version}, commit {commit.hash[:12]}; what is not committed is left out")
        shutil.rmtree(out, ignore_errors=True)
        first = hashes(build(tree, commit, out))
        _write_materials(tree, commit, version, out)
    return _compare(first, build_elsewhere(ROOT, commit), out)


def _write_materials(tree: Path, commit: Commit, version: str, out: Path) -> None:
    bills = {
        f"foredeck-{version}.cdx.json": python_bill(tree, commit),
        f"pi-foredeck-{version}.cdx.json": npm_bill(tree, commit),
    }
    for name, bill in bills.items():
        (out / name).write_text(json.dumps(bill, indent=1, sort_keys=True) + "\n")
    for name in not_described(bills[f"foredeck-{version}.cdx.json"]):
        print(f"not installed here, so the bill only names it: {name}", file=sys.stderr)
    (out / "third-party-licences.txt").write_text(licence_page(bills.values()))


def _compare(first: dict[str, str], second: dict[str, str], out: Path) -> int:
    sums = hashes(sorted(path for path in out.iterdir() if path.is_file()))
    lines = [f"{digest}  {name}" for name, digest in sorted(sums.items())]
    (out / "SHA256SUMS").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    if differing := sorted(name for name in first if first[name] != second.get(name)):
        print(f"release: a second build differs in {', '.join(differing)}", file=sys.stderr)
        return 1
    print(f"built twice with equal hashes: {', '.join(sorted(first))}\nin {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
