"""Where state lives, who its user is, and what the command line is called; quick to import."""

from __future__ import annotations

import getpass
import shlex
import shutil
import sys
from functools import cache
from pathlib import Path


def default_home() -> Path:
    """The platform's place for state of this user, for example ~/.local/state/foredeck."""
    # Only where no variable names the folder.
    from platformdirs import user_state_path

    return user_state_path("foredeck", appauthor=False)


def user_name() -> str:
    """The name of this machine's user, `user` where the system has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "user"


@cache
def command_name() -> str:
    """What to type in a shell to run this command line: its name if that is on the PATH, else how
    it was called, or where it is."""
    called, home = Path(sys.argv[0]), default_home()
    if called.stem != "foredeck" and called.name != "main.py":
        return "foredeck"  # another program, which has this one's modules
    if called.stem == "foredeck" and home not in Path(sys.executable).parents:
        return "foredeck" if shutil.which("foredeck") else _quoted(called)
    return typed_command(home)


def typed_command(home: Path) -> str:
    file = command_file(home)
    return "foredeck" if file is None or shutil.which("foredeck") else _quoted(file)


def command_file(home: Path) -> Path | None:
    """This Python's command line, if installed."""
    suffix, own = {"win32": (".cmd", ".exe")}.get(sys.platform, ("", ""))
    beside = Path(sys.executable).with_name(f"foredeck{own}")
    launcher = home / "bin" / f"foredeck{suffix}"
    if home in beside.parents and launcher.is_file():
        return launcher
    return beside if beside.is_file() else None


def _quoted(path: Path) -> str:
    text = str(path)
    if sys.platform == "win32":
        return f'"{text}"' if " " in text else text
    home = f"{Path.home()}/"
    is_below = text.startswith(home)
    return f"~/{shlex.quote(text[len(home) :])}" if is_below else shlex.quote(text)
