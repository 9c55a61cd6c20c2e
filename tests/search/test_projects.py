"""Which folders are one project."""

from __future__ import annotations

import subprocess
from pathlib import Path

from foredeck.search.projects import folders_of_project, project_of


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def test_a_repository_and_its_worktrees_are_one_project(tmp_path: Path) -> None:
    first, other = tmp_path / "first", tmp_path / "other"
    for folder in (first, other):
        (folder / "deep").mkdir(parents=True)
        git(folder, "init", "-q")
        git(folder, "commit", "-q", "--allow-empty", "-m", "begin")
    git(first, "worktree", "add", "-q", str(tmp_path / "tree"))
    folders = [str(first), str(first / "deep"), str(tmp_path / "tree"), str(other)]
    assert folders_of_project(str(first), folders) == folders[:3]
    assert project_of(str(other / "deep")) == project_of(str(other))


def test_a_folder_in_no_repository_is_its_own_whatever_leads_there(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert project_of(str(tmp_path / "link")) == project_of(str(tmp_path / "a"))
    assert project_of(str(tmp_path)) != project_of(str(tmp_path / "a"))
    assert project_of("/gone/for/good") == project_of("/gone/for/good/")
    assert project_of("/gone\0odd") == project_of("/gone\0odd")
