"""Bills of materials (CycloneDX), and others' licences, at the commit's time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from foredeck_bench.release.building import BuildFailed, Commit

BUILDERS = frozenset({"dev", "release"})
"""Extras that nobody needs who runs foredeck."""

CYCLONEDX = Path(__file__).parents[3] / ".cache" / "cyclonedx" / "bin" / "python"
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
    variables = {**os.environ, "SOURCE_DATE_EPOCH": str(commit.seconds)}
    result = subprocess.run(words, cwd=folder, env=variables, capture_output=True, check=False)
    if result.returncode:
        raise BuildFailed(f"{' '.join(words)}:\n{result.stderr.decode()}")
    bill: Bill = json.loads(result.stdout)
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
