"""Git as tests run it: as somebody, whatever is configured on the machine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

WHO = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
ALONE = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


def git(folder: Path, *arguments: str) -> str:
    """What a command of git prints."""
    environment, ran = {**os.environ, **ALONE}, ["git", *WHO, *arguments]
    return subprocess.run(
        ran, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
