"""Where configuration lives on this machine, and who may read the state folder."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from foredeck.errors import ConfigError

PROJECT_FILE = Path(".pi") / "foredeck.toml"
PRIVATE = 0o700


def user_config_file() -> Path:
    """The user's configuration file, for example ~/.config/foredeck/config.toml."""
    # Only where no variable names the folder.
    from platformdirs import user_config_path

    return user_config_path("foredeck", appauthor=False) / "config.toml"


def user_rules_file() -> Path:
    """The user's rules for all sessions, beside their configuration file; it need not be there."""
    return user_config_file().with_name("rules.md")


def project_config_file(project: Path) -> Path:
    """The configuration file that a project brings along."""
    return project / PROJECT_FILE


def ensure_home(home: Path) -> Path:
    """Create the state folder if need be and close it to other users; returns it.

    Raises ConfigError if it cannot be created, is not a folder, belongs to another user, or is a
    folder that others rely on (a home folder, a file system's root, a shared temporary folder).
    """
    try:
        home.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    except FileExistsError:
        raise ConfigError(f"the state folder {home} is not a folder; set FOREDECK_HOME") from None
    except OSError as error:
        raise ConfigError(_cannot("create", home, error)) from error
    if sys.platform != "win32":
        _make_private(home)
    return home


def looser_than_private(home: Path) -> bool:
    """Whether other users of this machine can get into the folder. False on Windows."""
    return sys.platform != "win32" and bool(stat.S_IMODE(home.stat().st_mode) & 0o077)


def foreign_owner(home: Path) -> int | None:
    """The user that the folder belongs to, where that is another one: root may use it all the same,
    but its owner can read and change what is in it. None on Windows."""
    if sys.platform == "win32":
        return None
    owner = home.stat().st_uid
    return None if owner == os.geteuid() else owner


def _make_private(home: Path) -> None:
    if not looser_than_private(home):
        return
    # Others rely on these: to close them would lock them out. A sticky bit marks folders like /tmp.
    if home == Path(home.anchor) or home == Path.home() or home.stat().st_mode & stat.S_ISVTX:
        raise ConfigError(
            f"the state folder {home} is shared with others; "
            "set FOREDECK_HOME to a folder of its own"
        )
    try:
        home.chmod(PRIVATE)
    except OSError as error:
        raise ConfigError(_cannot("close to other users", home, error)) from error


def _cannot(verb: str, home: Path, error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"cannot {verb} the state folder {home}: {reason}; set FOREDECK_HOME to another folder"
