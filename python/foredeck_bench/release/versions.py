"""The version of foredeck, which four files name."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path


class VersionsDiffer(Exception):
    """The files do not name one version."""


def versions(root: Path) -> dict[str, str]:
    """The version by file."""
    package = json.loads((root / "package.json").read_text())
    lock = json.loads((root / "package-lock.json").read_text())
    module = (root / "python/foredeck/__init__.py").read_text()
    found = re.search(r'^__version__ = "(.+)"$', module, re.MULTILINE)
    return {
        "pyproject.toml": tomllib.loads((root / "pyproject.toml").read_text())["project"][
            "version"
        ],
        "python/foredeck/__init__.py": found[1] if found else "",
        "package.json": package["version"],
        "package-lock.json": lock["packages"][""]["version"],
    }


def the_version(root: Path) -> str:
    """The one version. Raises `VersionsDiffer`."""
    found = versions(root)
    if len(set(found.values())) != 1:
        raise VersionsDiffer(", ".join(f"{file} says {value}" for file, value in found.items()))
    return found["pyproject.toml"]
