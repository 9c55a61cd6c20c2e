"""Which of the model's tools a project's sessions declare: left in the state folder for the host.

A host declares its tools before any engine runs, so it reads what the engine before has left
(`ts-shim/switches.ts`). What is written here holds from the next session on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from foredeck.config.tools import ToolsSection
from foredeck.errors import ForedeckError
from foredeck.model.own_tools import Facility
from foredeck.store.location import private_draft

FOLDER = "switches"


class Switches:
    """Those of one project. `root`: its main folder.

    `holds_tasks` is asked where the configuration leaves it to the project whether its sessions
    have the task tools.
    """

    def __init__(
        self, home: Path, root: str, tools: ToolsSection, holds_tasks: Callable[[], bool]
    ) -> None:
        self._file = home / FOLDER / f"{_key(root)}.json"
        self._tools = tools
        self.holds_tasks = holds_tasks

    @property
    def tasks_chosen(self) -> bool | None:
        """What the user has said about the task tools in this project; None for nothing."""
        chosen = self._read().get("tasks")
        return chosen if isinstance(chosen, bool) else None

    def choose_tasks(self, wanted: bool) -> None:
        """The user wants the task tools in this project, or does not. Raises `OSError`."""
        self._write(wanted)

    def refresh(self) -> None:
        """Leave what follows from the configuration and the project as they are now.

        Nobody waits for it, so neither a full disk nor a store that is away fails anything here.
        """
        with suppress(OSError, ForedeckError):
            self._write(self.tasks_chosen)

    def _write(self, chosen: bool | None) -> None:
        wanted: dict[str, Any] = {"facilities": list(self._declared(chosen))}
        if chosen is not None:
            wanted["tasks"] = chosen
        if self._read() == wanted:
            return
        self._file.parent.mkdir(mode=0o700, exist_ok=True)
        with private_draft(self._file) as draft:
            draft.write(json.dumps(wanted).encode())

    def _declared(self, chosen: bool | None) -> tuple[Facility, ...]:
        """What is off in the configuration is off; else what the user has said here goes before
        it, and that before what the project holds."""
        tools = self._tools
        if tools.tasks == "off":
            return tools.declared(tasks=False)
        if chosen is not None:
            tools = tools.model_copy(update={"tasks": "on" if chosen else "off"})
        return tools.declared(tasks=tools.tasks == "auto" and self.holds_tasks())

    def _read(self) -> dict[str, Any]:
        try:
            found = json.loads(self._file.read_bytes())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}


def _key(root: str) -> str:
    """As `projectKey` of the shim has it."""
    return sha256(os.path.realpath(root).encode("utf-8", "surrogatepass")).hexdigest()[:32]
