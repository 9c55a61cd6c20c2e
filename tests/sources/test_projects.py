"""Which folders are one project."""

from __future__ import annotations

from pathlib import Path

import pytest

from foredeck.lookup.sessions import project_folder
from foredeck.sources.filesystem import FilesystemMap, Mount
from foredeck.sources.projects import folders_of_project, project_of
from with_git import git

HERE = FilesystemMap("here")


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "begin")
    return folder


def test_a_repository_and_its_worktrees_are_one_project(tmp_path: Path) -> None:
    first, other = repository(tmp_path / "first"), repository(tmp_path / "other")
    for folder in (first, other):
        (folder / "deep").mkdir()
    git(first, "worktree", "add", "-q", str(tmp_path / "tree"))
    folders = [str(first), str(first / "deep"), str(tmp_path / "tree"), str(other)]
    assert folders_of_project(str(first), folders, HERE) == folders[:3]
    assert project_of(str(other / "deep"), HERE) == project_of(str(other), HERE)


def test_a_folder_that_is_not_known_is_in_no_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = repository(tmp_path / "first")
    git(first, "worktree", "add", "-q", str(tmp_path / "tree"))
    monkeypatch.chdir(tmp_path / "tree")
    assert folders_of_project(str(first), [""], FilesystemMap("here", cwd=str(first))) == []
    assert project_folder("") == ""


def test_a_worktree_has_the_name_and_the_root_of_its_repository(tmp_path: Path) -> None:
    first = repository(tmp_path / "first")
    git(first, "worktree", "add", "-q", str(tmp_path / "tree"))
    project = project_of(str(tmp_path / "tree"), HERE)
    assert (project.root, project.name) == (str(first), "first")


def test_a_submodule_is_a_project_of_its_own(tmp_path: Path) -> None:
    inner, outer = repository(tmp_path / "inner"), repository(tmp_path / "outer")
    allow = ("-c", "protocol.file.allow=always")
    git(outer, *allow, "submodule", "--quiet", "add", str(inner), "part")
    assert len({project_of(str(outer / p), HERE) for p in (".", "part")}) == 2
    assert project_of(str(outer / "part"), HERE).name == "part"


def test_a_folder_in_no_repository_is_its_own_whatever_leads_there(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert project_of(str(tmp_path / "link"), HERE) == project_of(str(tmp_path / "a"), HERE)
    assert project_of(str(tmp_path), HERE) != project_of(str(tmp_path / "a"), HERE)


@pytest.mark.parametrize("folder", ["/gone/for/good", "/gone\0odd", "/"])
def test_a_folder_that_is_not_here_is_known_by_its_path(folder: str) -> None:
    assert project_of(folder, HERE) == project_of(folder + "/", HERE)
    assert project_of(folder, HERE) != project_of("/another", HERE)


def test_machines_that_share_a_folder_share_its_project(tmp_path: Path) -> None:
    shared = repository(tmp_path / "volume" / "repo")
    seen = {
        project_of(folder, FilesystemMap(machine, [Mount("/team", str(shared.parent), "team")]))
        for machine, folder in (("one", str(shared)), ("two", "/team/repo"))
    }
    assert len(seen) == 1


def test_a_container_names_the_folders_that_its_git_files_name(tmp_path: Path) -> None:
    first = repository(tmp_path / "work" / "first")
    git(first, "worktree", "add", "-q", "../tree")
    named = tmp_path / "work" / "tree" / ".git"
    named.write_text("gitdir: /code/first/.git/worktrees/tree\n")
    files = FilesystemMap("box", [Mount("/code", str(tmp_path / "work"))], sandboxed=True)
    assert project_of("/code/tree", files) == project_of("/code/first", files)
    assert project_of("/elsewhere", files).name == "elsewhere"
