"""`/foredeck command`: the command line is put on the PATH, since the user asks."""

from __future__ import annotations

import filecmp
import os
import shutil
import sys
from pathlib import Path

from foredeck.errors import ToolError
from foredeck.home import command_file


def put_on_path(home: Path) -> str:
    """Link the command line where shells look for programs of this user; on Windows it is copied.
    Gives what the user reads. Raises `ToolError` where another program has its name, or where it
    cannot be put there."""
    file = command_file(home)
    if file is None:
        raise ToolError("There is no command line yet: type /foredeck setup first.")
    is_windows = sys.platform == "win32"
    local = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    folder = (
        Path(local, "Microsoft", "WindowsApps") if is_windows else Path.home() / ".local" / "bin"
    )
    target = folder / file.name
    try:
        if not os.path.lexists(target):
            folder.mkdir(parents=True, exist_ok=True)
            (shutil.copyfile if is_windows else os.symlink)(file, target)
        is_ours = (
            filecmp.cmp(file, target, shallow=False)
            if is_windows
            else target.resolve() == file.resolve()
        )
    except OSError as error:
        raise ToolError(f"{target} cannot be made or read: {error}.") from error
    if not is_ours:
        raise ToolError(f"{target} is there already; remove it, then type /foredeck command again.")
    found = f"{target} runs foredeck's command line."
    if shutil.which("foredeck"):
        return found
    return f"{found} Add {folder} to your PATH to type just foredeck."
