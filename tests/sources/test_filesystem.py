"""Filesystem ids, mounts and identity paths."""

from __future__ import annotations

import posixpath
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foredeck.model.sources import FilesystemSource
from foredeck.sources.filesystem import FilesystemMap, Mount

BASE = "b" * 64
names = st.text(st.sampled_from("ab.é \udcff\\-"), min_size=1, max_size=3).filter(
    lambda name: name not in (".", "..")
)
paths = st.lists(names, max_size=5).map(lambda parts: "/" + "/".join(parts))


def test_relative_paths_start_from_the_cwd_that_is_given() -> None:
    filesystems = FilesystemMap(BASE, cwd="/repo")
    assert filesystems.absolute("a") == "/repo/a"
    assert filesystems.absolute("a", "/other") == "/other/a"
    assert filesystems.absolute("/x//y/./z/..", "/other") == "/x/y"
    assert filesystems.absolute("//x") == "/x"
    assert filesystems.absolute("../../../..") == "/"


@given(mounts=st.lists(paths, max_size=6, unique_by=posixpath.normpath), path=paths)
def test_any_mounts_and_any_path(mounts: list[str], path: str) -> None:
    filesystems = FilesystemMap(BASE, [Mount(m, filesystem_id=m) for m in mounts], cwd="/")
    found = filesystems.locate(path, follow=False)
    parts = path.strip("/").split("/") if path != "/" else []
    expected = [m for m in mounts if (q := [p for p in m.split("/") if p]) == parts[: len(q)]]
    assert found.filesystem_id == max(expected, key=len, default=BASE)


@given(first=paths, second=paths)
def test_one_identity_per_path(first: str, second: str) -> None:
    filesystems = FilesystemMap(BASE, cwd="/")
    one, two = (filesystems.locate(p, follow=False) for p in (first, second))
    assert (one.object_id == two.object_id) == (first == second)
    assert filesystems.locate(one.path, follow=False) == one


@given(path=paths, host=st.sampled_from(["/", "/srv/repo", "/srv/re po"]))
def test_a_mounted_path_is_translated_and_the_agents_name_leads_back(path: str, host: str) -> None:
    filesystems = FilesystemMap(
        BASE, [Mount("/workspace", host_path=host)], cwd="/", host_id="host", sandboxed=True
    )
    found = filesystems.locate("/workspace" + path, follow=False)
    assert found.filesystem_id == "host"
    assert found.path == found.local == posixpath.normpath(host.rstrip("/") + path)
    name = filesystems.agent_path(found.filesystem_id, found.path)
    assert name == posixpath.normpath("/workspace" + path)
    assert filesystems.locate(name, follow=False) == found


def test_files_outside_the_mounts_are_called_as_they_are() -> None:
    plain = FilesystemMap(BASE, cwd="/")
    assert plain.agent_path(BASE, "/srv/a") == "/srv/a"
    mapped = FilesystemMap("c1", [Mount("/w", "/srv")], cwd="/w", host_id=BASE, sandboxed=True)
    assert mapped.agent_path("c1", "/etc/hosts") == "/etc/hosts"
    assert mapped.agent_path("elsewhere", "/srv/a") == "/srv/a"


@pytest.mark.parametrize(
    ("cwd", "sandboxed", "name"),
    [("/mnt/team", False, "/mnt/team/a"), ("/team", False, "/team/a"), ("/mnt", True, "/team/a")],
)
def test_a_shared_file_is_called_as_its_agent_reaches_it(
    cwd: str, sandboxed: bool, name: str
) -> None:
    shared = Mount("/team", host_path="/mnt/team", filesystem_id="nas")
    filesystems = FilesystemMap(BASE, [shared], cwd=cwd, sandboxed=sandboxed)
    assert filesystems.agent_path("nas", "/team/a") == name


def test_a_relative_path_means_a_mounted_file_where_the_host_runs_on_this_side(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.py").write_text("x")
    mount = Mount("/w", str(tmp_path))
    filesystems = FilesystemMap("c1", [mount], cwd=str(tmp_path), host_id=BASE, sandboxed=True)
    assert filesystems.locate("a.py") == filesystems.locate("/w/a.py")
    assert filesystems.locate("a.py", str(tmp_path)).local == str(tmp_path.resolve() / "a.py")


def test_paths_of_a_sandbox_are_out_of_reach() -> None:
    filesystems = FilesystemMap(
        BASE, [Mount("/workspace", host_path="/srv")], cwd="/workspace", sandboxed=True
    )
    found = filesystems.locate("/etc/passwd")
    assert (found.filesystem_id, found.path, found.local) == (BASE, "/etc/passwd", None)
    assert filesystems.locate_local("/etc/passwd").local is None
    assert filesystems.local_path(found.source) is None


def test_two_containers_with_one_bind_mount_share_objects(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x")
    one = FilesystemMap("c1", [Mount("/w", str(tmp_path))], cwd="/w", host_id=BASE, sandboxed=True)
    two = FilesystemMap("c2", [Mount("/v", str(tmp_path))], cwd="/v", host_id=BASE, sandboxed=True)
    host = FilesystemMap(BASE, cwd=str(tmp_path))
    ids = {m.locate("a.py").object_id for m in (one, two, host)}
    assert len(ids) == 1
    assert one.locate("/etc/hosts").object_id != two.locate("/etc/hosts").object_id


def test_a_link_that_leads_out_of_a_translated_mount_is_not_followed(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("x")
    (inside / "leak").symlink_to(outside / "secret")
    (inside / "fine").symlink_to("real")
    (inside / "real").write_text("x")
    filesystems = FilesystemMap(BASE, [Mount("/w", str(inside))], cwd="/w", sandboxed=True)
    assert filesystems.locate("/w/leak").local is None
    assert filesystems.locate("/w/fine").path == str(inside.resolve() / "real")


def test_links_lead_to_one_identity(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "real").mkdir()
    (root / "real" / "a.py").write_text("x")
    (root / "folder").symlink_to("real")
    (root / "file.py").symlink_to("folder/a.py")
    filesystems = FilesystemMap(BASE, cwd=str(root))
    found = {filesystems.locate(p).object_id for p in ("real/a.py", "folder/a.py", "file.py")}
    assert len(found) == 1
    assert filesystems.locate("file.py").path == str(root / "real" / "a.py")


def test_links_are_looked_at_again_after_forget(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    for name in ("one", "two"):
        (root / name).mkdir()
    (root / "now").symlink_to("one")
    filesystems = FilesystemMap(BASE, cwd=str(root))
    assert filesystems.locate("now/a").path == str(root / "one" / "a")
    (root / "now").unlink()
    (root / "now").symlink_to("two")
    filesystems.forget()
    assert filesystems.locate("now/a").path == str(root / "two" / "a")


def test_a_link_in_a_loop_is_its_own_identity(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "self").symlink_to("self")
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    filesystems = FilesystemMap(BASE, cwd=str(root))
    assert filesystems.locate("self").path == str(root / "self")
    for name in ("a", "b"):
        found = filesystems.locate(name)
        assert found == filesystems.locate(name)
        assert Path(found.path).parent == root


def test_a_missing_file_keeps_its_path(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "dangling").symlink_to("nowhere")
    filesystems = FilesystemMap(BASE, cwd=str(root))
    assert filesystems.locate("no/such/file").path == str(root / "no" / "such" / "file")
    assert filesystems.locate("dangling").path == str(root / "nowhere")


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_names_that_no_file_can_have_are_out_of_reach(name: str) -> None:
    assert FilesystemMap(BASE, cwd="/").locate(name).local is None


def test_a_mount_whose_folder_is_a_link(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "real").mkdir()
    (root / "link").symlink_to("real")
    filesystems = FilesystemMap(
        BASE, [Mount(str(root / "link"), filesystem_id="net")], cwd=str(root)
    )
    location = filesystems.locate("link/a")
    assert (location.filesystem_id, location.path) == ("net", str(root / "link" / "a"))
    assert location.local == str(root / "real" / "a")
    assert filesystems.local_path(location.source) == str(root / "real" / "a")
    assert filesystems.locate("real/a") == location


def test_a_shared_volume_has_one_identity_wherever_it_is_mounted(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    at_one, at_two = root / "one", root / "two" / "deep"
    for folder in (at_one, at_two):
        folder.mkdir(parents=True)
        (folder / "a.py").write_text("x")
        (folder / "same.py").symlink_to("a.py")
    share = Mount("/team/repo", str(at_one), "volume")
    one = FilesystemMap("machine-1", [share], cwd=str(at_one))
    two = FilesystemMap("machine-2", [Mount("/team/repo", str(at_two), "volume")], cwd=str(at_two))
    box = FilesystemMap("box", [share], cwd="/team/repo", host_id="machine-1", sandboxed=True)
    names = {
        one: ["a.py", "/team/repo/a.py", str(at_one / "a.py"), "same.py"],
        two: ["a.py", "/team/repo/a.py", str(at_two / "same.py")],
        box: ["a.py", "/team/repo/same.py"],
    }
    for filesystems, paths_ in names.items():
        for path in paths_:
            found = filesystems.locate(path)
            assert (found.filesystem_id, found.path) == ("volume", "/team/repo/a.py"), path
            assert found.local is not None
            assert Path(found.local).name == "a.py"
            assert filesystems.local_path(found.source) == found.local
            assert filesystems.locate_local(found.local) == found
    assert two.locate("a.py", follow=False).path == "/team/repo/a.py"
    assert one.locate("/team/repo/gone/b.py").path == "/team/repo/gone/b.py"
    assert one.locate("/team/repo").path == "/team/repo"
    here = FilesystemSource(filesystemId="machine-1", path=str(at_one / "a.py"))
    assert one.local_path(here) is None


def test_a_link_from_one_shared_volume_into_another(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "outer" / "inner").mkdir(parents=True)
    (root / "other").mkdir()
    (root / "outer" / "link").symlink_to(root / "other")
    filesystems = FilesystemMap(
        BASE,
        [
            Mount("/v", str(root / "outer"), "outer"),
            Mount("/v/inner", str(root / "outer" / "inner"), "inner"),
            Mount("/w", str(root / "other"), "other"),
        ],
        cwd=str(root),
    )
    inner = filesystems.locate(str(root / "outer" / "inner" / "a"))
    assert (inner.filesystem_id, inner.path) == ("inner", "/v/inner/a")
    assert filesystems.locate("/v/inner/a") == inner
    assert filesystems.local_path(inner.source) == inner.local
    # A container does not see where a link out of its mount leads.
    assert filesystems.locate("/v/link/a").local is None
    assert filesystems.locate(str(root / "outer" / "link" / "a")).filesystem_id == "other"
    hidden = FilesystemSource(filesystemId="outer", path="/v/inner/a")
    assert filesystems.local_path(hidden) is None


@given(path=paths, roots=st.lists(paths, min_size=1, max_size=3, unique_by=posixpath.normpath))
def test_local_paths_and_identities_are_inverse(path: str, roots: list[str]) -> None:
    mounts = [
        Mount(f"/s{n}", host_path=root, filesystem_id=f"v{n}") for n, root in enumerate(roots)
    ]
    filesystems = FilesystemMap(BASE, mounts, cwd="/")
    found = filesystems.locate_local(path, follow=False)
    assert filesystems.local_path(found.source) == found.local


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="needs a second file system")
def test_another_device_gets_an_id_of_its_own(tmp_path: Path) -> None:
    here, there = str(tmp_path / "x"), "/dev/shm/foredeck-no-such-file"
    plain = FilesystemMap(BASE, cwd="/")
    assert plain.locate(there).filesystem_id == BASE
    filesystems = FilesystemMap(BASE, device_fallback=True, cwd="/")
    other = filesystems.locate(there)
    assert other.filesystem_id not in (BASE, filesystems.locate("/x").filesystem_id)
    assert other == FilesystemMap(BASE, device_fallback=True, cwd=here).locate(there)
    assert filesystems.local_path(other.source) == there
    mapped = FilesystemMap(BASE, [Mount("/dev/shm", filesystem_id="shm")], True, "/")
    assert mapped.locate(there).filesystem_id == "shm"
