"""Where state lives by default, and by which name the command line is called.

Not in `config`: a help text or an error is printed without loading that.
"""

from __future__ import annotations

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


@cache
def command_name() -> str:
    """What to type in a shell to run this command line: its name if that is on the PATH, else how
    it was called, or where it is."""
    if shutil.which("foredeck"):
        return "foredeck"
    suffix = {"win32": (".cmd", ".exe")}.get(sys.platform, ("", ""))
    launcher = default_home() / "bin" / f"foredeck{suffix[0]}"
    called = Path(sys.argv[0])
    beside = Path(sys.executable).with_name(f"foredeck{suffix[1]}")
    if called.stem != "foredeck" and called.name != "main.py":
        return "foredeck"  # another program, which has this one's modules
    if default_home() in beside.parents and launcher.is_file():
        return _quoted(launcher)
    return _quoted(called if called.stem == "foredeck" else beside)


def _quoted(path: Path) -> str:
    text = str(path)
    if sys.platform == "win32":
        return f'"{text}"' if " " in text else text
    home = f"{Path.home()}/"
    is_below = text.startswith(home)
    return f"~/{shlex.quote(text[len(home) :])}" if is_below else shlex.quote(text)
