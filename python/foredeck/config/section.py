"""What all sections of the configuration share."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict


class UserOnly:
    """Marks a key, or a section with all its keys, that a project's own file may not set."""


class OutsideFiles(UserOnly):
    """Marks a key that no file may set at all, only the environment and a flag."""


USER_ONLY = UserOnly()
OUTSIDE_FILES = OutsideFiles()


class Section(BaseModel):
    """A group of keys: immutable, and closed to keys that it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


def absolute_path(path: Path) -> Path:
    """The path with `~` expanded. Raises ValueError if it is relative."""
    path = path.expanduser()
    if not path.is_absolute():
        raise ValueError("must be an absolute path (or start with ~)")
    return path
