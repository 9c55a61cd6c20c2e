"""Which tools a project's sessions declare, left in the state folder for the host.

Hosts declare tools before an engine runs, so changes hold from the next session on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from foredeck.config import Config
from foredeck.config.sections import ToolsSection
from foredeck.context.state.facilities import Facilities
from foredeck.context.state.session import SessionFolder
from foredeck.engine.hooks import SwitchedPart
from foredeck.errors import ForedeckError
from foredeck.model.own_tools import FACILITY_TOOLS, Facility
from foredeck.regular_files import read_regular
from foredeck.store.location import private_draft

FOLDER = "switches"


class Switches:
    """The switches of one project; `root` is its main folder, `cwd` the session's."""

    def __init__(
        self, home: Path, root: str, tools: ToolsSection, made: Facilities, cwd: str | None = None
    ) -> None:
        self._file = home / FOLDER / f"{_key(root)}.json"
        self._folders_file = home / FOLDER / f"{_key(cwd or root)}.json"
        self._tools = tools
        self._parts = made.on(SwitchedPart)

    @classmethod
    def of(cls, config: Config, session_folder: SessionFolder, made: Facilities) -> Self:
        """The switches of a session's project."""
        root, cwd = session_folder.project.root, session_folder.cwd
        return cls(config.home, root, config.tools, made, cwd)

    def choose(self, facility: Facility, *, wanted: bool) -> None:
        """Sets the user's choice of tools for the project. Raises `OSError`."""
        self._write({facility: wanted})

    def note(self, name: str) -> None:
        """Keeps a fact of the project."""
        if _read(self._file).get(name) is not True:
            with suppress(OSError, ForedeckError):
                self._write({name: True})

    def refresh(self) -> None:
        """Writes what follows from configuration and project."""
        # No request waits for it: neither a full disk nor a store that is away may fail one.
        with suppress(OSError, ForedeckError):
            self._write({})

    def _write(self, new: dict[str, bool]) -> None:
        before = _read(self._file)
        notes = {name: value for name, value in before.items() if isinstance(value, bool)} | new
        declared = list(self._declared(notes))
        _leave(self._file, before, {"facilities": declared, **notes})
        # The host looks for its own folder, before it could know which project that is in.
        if self._folders_file != self._file:
            by_folder = _read(self._folders_file)
            _leave(self._folders_file, by_folder, {**by_folder, "facilities": declared})

    def _declared(self, notes: Mapping[str, bool]) -> tuple[Facility, ...]:
        tools = self._tools
        chosen = {
            facility: "on" if notes[facility] else "off"
            for facility in FACILITY_TOOLS
            if facility in notes and getattr(tools, facility) != "off"
        }

        def has_use_for(facility: Facility) -> bool:
            return any(part.has_use(notes) for part in self._parts if part.facility == facility)

        return tools.model_copy(update=chosen).declared(has_use_for)


def _read(file: Path) -> dict[str, Any]:
    try:
        # The folder is the user's own, but a crash may have left anything.
        content = json.loads(read_regular(file))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _leave(file: Path, before: dict[str, Any], wanted: dict[str, Any]) -> None:
    # Nearly every refresh finds nothing new.
    if before == wanted:
        return
    file.parent.mkdir(mode=0o700, exist_ok=True)
    with private_draft(file) as draft:
        draft.write(json.dumps(wanted).encode())


def _key(folder: str) -> str:
    """As the shim's `folderKey`."""
    return sha256(os.path.realpath(folder).encode("utf-8", "surrogatepass")).hexdigest()[:32]
