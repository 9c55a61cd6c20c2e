"""Where a store lies: which file system, and who has it open."""

from __future__ import annotations

import multiprocessing
import sys
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from foredeck.store.location import draft_beside, filesystem_type, holders, is_network_filesystem

MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/sdb1 /home/local xfs rw 0 0
//host/share /mnt/with\\040space cifs rw 0 0
/dev/sdc1 /twice ext4 rw 0 0
server:/twice /twice nfs rw 0 0
broken line
me@host: /mnt/ssh fuse.sshfs rw 0 0
"""


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    """A mount table."""
    path = tmp_path / "mounts"
    path.write_text(MOUNTS)
    return path


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/var/lib/x", "ext4"),
        ("/home", "nfs4"),
        ("/home/me/foredeck.db", "nfs4"),
        ("/homework/x", "ext4"),
        ("/home/local/x", "xfs"),
        ("/mnt/with space/x", "cifs"),
        ("/twice/x", "nfs"),
        ("/mnt/ssh/deep/er", "fuse.sshfs"),
    ],
)
def test_the_longest_mount_point_wins(mounts: Path, path: str, kind: str) -> None:
    assert filesystem_type(path, mounts) == kind


def test_without_a_mount_table(tmp_path: Path) -> None:
    assert filesystem_type("/x", tmp_path / "absent") is None


def test_a_path_that_does_not_exist_yet(tmp_path: Path) -> None:
    assert is_network_filesystem(tmp_path / "not" / "there") is is_network_filesystem(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_folder_in_which_no_file_can_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as refused, draft_beside(tmp_path / "gone" / "a.db"):
        pass
    assert refused.value.filename == str(tmp_path / "gone")


def test_other_processes_that_hold_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    with path.open():
        assert holders(path) == []
        spawn = multiprocessing.get_context("spawn")
        ours, theirs = spawn.Pipe()
        process = spawn.Process(target=_hold_open, args=(path, theirs))
        process.start()
        assert ours.poll(60)
        ours.recv()
        assert holders(path) == [process.pid]
        ours.send("go")
        process.join(60)
        assert holders(path) == []


def _hold_open(path: Path, pipe: Connection) -> None:
    with path.open():
        pipe.send("open")
        pipe.recv()
