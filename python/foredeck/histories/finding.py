"""Finding the files of histories: in what the user names, or where the agents keep them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

SUFFIXES = (".jsonl", ".jsonl.gz")
"""What files are called in a folder; a file that is named by itself may be called anything."""


@dataclass(frozen=True, slots=True)
class UsualFolder:
    """Where an agent keeps its sessions, and how many files are there."""

    agent: str
    path: Path
    files: tuple[Path, ...]
    size: int
    """Bytes of all of them."""


def usual_folders(home: Path | None = None) -> list[UsualFolder]:
    """The folders of the agents that are known, those that hold any files.

    `home`: the user's; the agents' own variables (`PI_CODING_AGENT_DIR`, `CLAUDE_CONFIG_DIR`,
    `CODEX_HOME`) name others.
    """
    home = home or Path.home()
    places = (
        ("Pi", _agent_folder("PI_CODING_AGENT_DIR", home / ".pi" / "agent") / "sessions"),
        ("Claude Code", _agent_folder("CLAUDE_CONFIG_DIR", home / ".claude") / "projects"),
        ("Codex", _agent_folder("CODEX_HOME", home / ".codex") / "sessions"),
    )
    found = []
    for agent, folder in places:
        files = tuple(history_files([folder])) if folder.is_dir() else ()
        if files:
            found.append(UsualFolder(agent, folder, files, sum(map(_size, files))))
    return found


def history_files(paths: Iterable[Path]) -> Iterator[Path]:
    """The files among files and folders, those of a folder in order of their names, each once."""
    seen: set[str] = set()
    for path in paths:
        for file in _within(path) if path.is_dir() else [path]:
            resolved = os.path.realpath(file)  # also of one that leads into a loop
            if resolved not in seen:
                seen.add(resolved)
                yield file


def _within(folder: Path) -> list[Path]:
    return sorted(
        Path(parent, name)
        for parent, _, names in os.walk(folder)
        for name in names
        if name.endswith(SUFFIXES)
    )


def _agent_folder(variable: str, default: Path) -> Path:
    named = os.environ.get(variable)
    return Path(named).expanduser() if named else default


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0
