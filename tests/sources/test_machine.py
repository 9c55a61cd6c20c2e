"""The default filesystem id: of the machine, of a container, or made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from foredeck.sources import filesystem
from foredeck.sources.filesystem import default_filesystem_id, find_container_id

ONE, TWO = "1f" * 32, "2e" * 32
HOSTNAME_MOUNT = "/var/lib/docker/containers/{}/hostname /etc/hostname rw - ext4 /dev/sda1 rw"


@pytest.mark.parametrize(
    ("cgroup", "mountinfo", "containerenv"),
    [
        (f"12:pids:/docker/{ONE}\n", "", ""),
        (f"0::/system.slice/docker-{ONE}.scope\n", "", ""),
        (f"1:name=systemd:/kubepods/burstable/pod0af3/{ONE}\n", "", ""),
        (f"0::/machine.slice/libpod-{ONE}.scope/container\n", "", ""),
        ("0::/\n", f"612 600 8:1 {HOSTNAME_MOUNT.format(ONE)}\n", ""),
        ("0::/\n", "", f'engine="podman-4.3"\nid="{ONE}"\n'),
    ],
)
def test_container_ids_of_the_usual_runtimes(
    cgroup: str, mountinfo: str, containerenv: str
) -> None:
    assert find_container_id(cgroup, mountinfo, containerenv) == ONE


def test_a_machine_that_runs_containers_is_none() -> None:
    mounts = (
        f"40 30 0:5 / /var/lib/docker/containers/{TWO}/mounts/shm rw - tmpfs shm rw\n"
        f"41 30 0:6 / /var/lib/docker/overlay2/{TWO}/merged rw - overlay overlay rw\n"
        f"42 30 8:1 /{TWO} /data rw - ext4 /dev/sda1 rw\n"
    )
    assert find_container_id("0::/user.slice/user-1000.slice\n", mounts) is None
    assert find_container_id("", "") is None
    assert find_container_id("nonsense", "one two\n\n:::", "\0") is None


def test_without_any_id_one_is_made_and_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(filesystem, "container_id", lambda: None)
    monkeypatch.setattr(filesystem, "machine_id", lambda: None)
    state = tmp_path / "state"
    first = default_filesystem_id(state)
    assert len(first) == 64
    assert default_filesystem_id(state) == first
    assert default_filesystem_id(tmp_path / "other") != first
    (state / filesystem.FALLBACK_NAME).write_text("")
    again = default_filesystem_id(state)
    assert again == default_filesystem_id(state) != first


def test_machine_id_files_in_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(filesystem.sys, "platform", "linux")
    first, second = tmp_path / "a", tmp_path / "b"
    monkeypatch.setattr(filesystem, "MACHINE_ID_FILES", (str(first), str(second)))
    assert filesystem.machine_id() is None
    second.write_text("two\n")
    assert filesystem.machine_id() == "two"
    first.write_text("uninitialized\n")
    assert filesystem.machine_id() == "two"
    first.write_text("one\n")
    assert filesystem.machine_id() == "one"
