"""Which tools a project's sessions declare, left in the state folder for the host.

Hosts declare tools before an engine runs, so changes hold from the next session on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from foredeck.config import Config
from foredeck.config.sections import ToolsSection
from foredeck.context.state.session import SessionFolder
from foredeck.errors import ForedeckError
from foredeck.model.memory import working_id
from foredeck.model.own_tools import Facility
from foredeck.regular_files import read_regular
from foredeck.store.location import private_draft
from foredeck.store.store import Store

FOLDER = "switches"
_SAID = ("tasks", "findings", "data")
"""Kept between sessions: the user's choices, and whether there is data."""


class Switches:
    """The switches of one project; `root` is its main folder, `cwd` the session's."""

    def __init__(
        self,
        home: Path,
        root: str,
        tools: ToolsSection,
        holds_tasks: Callable[[], bool],
        cwd: str | None = None,
        keeps_page: Callable[[], bool] = lambda: False,
    ) -> None:
        self._file = home / FOLDER / f"{_key(root)}.json"
        self._folders_file = home / FOLDER / f"{_key(cwd or root)}.json"
        self._tools = tools
        self.holds_tasks = holds_tasks
        self.keeps_page = keeps_page

    @classmethod
    def of(cls, config: Config, store: Store, session_folder: SessionFolder) -> Self:
        """The switches of a session's project."""
        project = session_folder.project
        return cls(
            config.home,
            project.root,
            config.tools,
            lambda: bool(store.query("task", {"project": project.id}, limit=1)),
            session_folder.cwd,
            lambda: store.head(working_id("resource", project.id)) is not None,
        )

    def choose_tasks(self, wanted: bool) -> None:
        """Sets the user's choice of task tools for the project. Raises `OSError`."""
        self._write({"tasks": wanted})

    def choose_findings(self, wanted: bool) -> None:
        """Sets the user's choice of `promote-finding` for the project. Raises `OSError`."""
        self._write({"findings": wanted})

    def note_data(self) -> None:
        """Notes that the project has a data tool."""
        if _read(self._file).get("data") is not True:
            with suppress(OSError, ForedeckError):
                self._write({"data": True})

    def refresh(self) -> None:
        """Writes what follows from configuration and project."""
        # No request waits for it: neither a full disk nor a store that is away may fail one.
        with suppress(OSError, ForedeckError):
            self._write({})

    def _write(self, said: dict[str, bool]) -> None:
        before = _read(self._file)
        chosen = {name: before[name] for name in _SAID if isinstance(before.get(name), bool)} | said
        declared = list(self._declared(chosen))
        _leave(self._file, before, {"facilities": declared, **chosen})
        # The host looks for its own folder, before it could know which project that is in.
        if self._folders_file != self._file:
            by_folder = _read(self._folders_file)
            _leave(self._folders_file, by_folder, {**by_folder, "facilities": declared})

    def _declared(self, chosen: dict[str, bool]) -> tuple[Facility, ...]:
        tools = self._tools
        update: dict[str, Any] = {
            name: "on" if chosen[name] else "off"
            for name in ("tasks", "findings")
            if name in chosen and getattr(tools, name) != "off"
        }

        def has_use_for(facility: Facility) -> bool:
            if facility == "tasks":
                return self.holds_tasks() or self.keeps_page()
            return facility == "findings" and chosen.get("data", False)

        return tools.model_copy(update=update).declared(has_use_for)


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
