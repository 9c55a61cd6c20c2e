"""The state folder: made, made private, and refused where it would hurt others."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from foredeck.config import ensure_home, looser_than_private
from foredeck.errors import ConfigError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_it_is_made_for_this_user_alone(tmp_path: Path) -> None:
    home = tmp_path / "a" / "b"
    assert ensure_home(home) == home
    assert mode(home) == 0o700
    assert not looser_than_private(home)


def test_one_that_others_can_read_is_closed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o755)
    assert looser_than_private(home)
    ensure_home(home)
    assert mode(home) == 0o700


def test_a_stricter_one_is_left_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o500)
    ensure_home(home)
    assert mode(home) == 0o500


def test_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ConfigError, match="is not a folder; set FOREDECK_HOME"):
        ensure_home(file)
    with pytest.raises(ConfigError, match="set FOREDECK_HOME"):
        ensure_home(file / "below")


def test_a_shared_folder_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    with pytest.raises(ConfigError, match="a folder of its own"):
        ensure_home(shared)
    assert mode(shared) == 0o1777


def test_the_users_home_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConfigError, match="a folder of its own"):
        ensure_home(tmp_path)
    assert mode(tmp_path) == 0o755


@pytest.mark.skipif(sys.platform != "linux", reason="needs a folder that even root cannot fill")
def test_one_that_cannot_be_made_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"cannot create .* set FOREDECK_HOME"):
        ensure_home(Path("/proc/foredeck/home"))
