"""Where one run works: folders of its own for HOME, Pi, foredeck and the files, thrown away after.

Nothing of the user's is in them but what Pi needs to reach a model: links to their `auth.json` and
`models.json`. A link, so that a login that is renewed meanwhile is renewed for the user, too.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from foredeck.evaluation.task_folders import EvalTask

MARK = "EVAL_RUN_OF_FOREDECK"
"""A variable of the processes of a run. Those that begin with FOREDECK_ are configuration."""
_OF_THE_USER = ("FOREDECK_", "PI_", "XDG_")
_LENT = ("auth.json", "models.json")
_SETTINGS = {"enableInstallTelemetry": False, "quietStartup": True, "cacheWarming": "off"}


@dataclass(frozen=True, slots=True)
class ScratchRun:
    """The folders of one run. Its processes carry `mark` in their environment."""

    root: Path
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def work(self) -> Path:
        """Where the agent works."""
        return self.root / "work"

    @property
    def agent_dir(self) -> Path:
        """Pi's configuration and sessions."""
        return self.root / "agent"

    @property
    def foredeck_home(self) -> Path:
        """foredeck's state."""
        return self.root / "foredeck"

    def prepare(self, task: EvalTask, agent_dir: Path) -> None:
        """Make the folders; `agent_dir` is the one of which keys and models are lent."""
        for folder in (self.root / "home", self.agent_dir):
            folder.mkdir(parents=True)
        shutil.copytree(task.folder / "files", self.work, ignore=_caches)
        (self.agent_dir / "settings.json").write_text(json.dumps(_SETTINGS))
        for name in _LENT:
            if (agent_dir / name).exists():
                _lend((agent_dir / name).resolve(), self.agent_dir / name)

    def lay_check(self, task: EvalTask) -> None:
        """Lay what the agent never saw over its work."""
        if (task.folder / "check").is_dir():
            shutil.copytree(task.folder / "check", self.work, ignore=_caches, dirs_exist_ok=True)

    def environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        """The user's environment, keys for models included, without what else is set for Pi and
        foredeck, and with another HOME."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(_OF_THE_USER)}
        home = str(self.root / "home")
        return {
            **kept,
            **{"HOME": home, "USERPROFILE": home, MARK: self.mark},
            **{
                "PI_CODING_AGENT_DIR": str(self.agent_dir),
                "FOREDECK_HOME": str(self.foredeck_home),
            },
            **{"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0"},
            **extra,
        }


def users_agent_dir() -> Path:
    """Pi's folder of this user."""
    named = os.environ.get("PI_CODING_AGENT_DIR")
    return Path(named).expanduser() if named else Path.home() / ".pi" / "agent"


def _lend(source: Path, target: Path) -> None:
    try:
        target.symlink_to(source)
    except OSError:  # Windows, without the right to make links
        shutil.copy2(source, target)


def _caches(_: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__"]
