"""Nothing that a repository names as a program is run, whatever foredeck asks git."""

from __future__ import annotations

import ast
import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import foredeck
from foredeck.cli.main import main
from foredeck.sources import git_process
from foredeck.sources.disk import DiskSource
from foredeck.sources.filesystem import FilesystemMap
from foredeck.sources.git import repository
from foredeck.sources.git_process import GitUnusable, opened_git
from foredeck.sources.projects import project_of
from foredeck.timeline.repositories import changed_since, look_at
from hostile.ground import SECRET, Ground, plain_git

HERE = FilesystemMap("here")
ENGINE = Path(foredeck.__file__).parent
SHIM = Path(__file__).parents[2] / "ts-shim"


def until() -> float:
    return time.monotonic() + 60


def make_racy(ground: Ground) -> None:
    """Let files have the time stamp of the index, so that git must compare their bytes."""
    now = time.time_ns() + 10**9
    for path in (*ground.repo.glob("*.*"), *ground.repo.glob("src/*.py")):
        os.utime(path, ns=(now, now), follow_symlinks=False)
    os.utime(ground.repo / ".git" / "index", ns=(now, now))


def read_as_committed(ground: Ground) -> None:
    nothing: Any = None  # what a name points to is not looked up in a store
    document = DiskSource(nothing, HERE).point("git:HEAD:src/app.py", str(ground.repo))
    assert document.content == "print('hello')\n"


def blame_lines(ground: Ground) -> None:
    with repository(str(ground.repo / "src")) as opened:
        assert [text for _, text in opened.blamed("app.py")] == ["print('hello')"]


def look_for_a_commit(ground: Ground) -> None:
    with repository(str(ground.repo)) as opened:
        assert opened.contains(opened.commit("main"))


def see_what_a_command_did(ground: Ground) -> None:
    make_racy(ground)
    before = look_at(str(ground.repo), until())
    assert before is not None
    (ground.repo / "made").write_text("made")
    make_racy(ground)
    changed = changed_since(before)
    assert changed is not None
    assert str(ground.repo / "made") in changed


def index_all(ground: Ground) -> None:
    assert main(["index", str(ground.repo)]) == 0


@pytest.mark.parametrize(
    "ask",
    [read_as_committed, blame_lines, look_for_a_commit, see_what_a_command_did, index_all],
    ids=lambda ask: ask.__name__,
)
def test_what_foredeck_asks_runs_nothing(ground: Ground, ask: Callable[[Ground], None]) -> None:
    ask(ground)
    assert ground.ran() == []


@pytest.mark.parametrize(
    "command",
    [
        *("status", "diff --ext-diff --textconv", "diff-files -p"),
        *("log -p --show-signature --ext-diff", "blame --textconv -- src/app.py"),
        *("cat-file --textconv HEAD:src/app.py", "cat-file --filters HEAD:src/app.py"),
        *("grep --textconv hello", "archive HEAD", "for-each-ref", "fetch", "fetch origin"),
        *("submodule status", "update-ref refs/heads/other HEAD"),
        "cat-file -p 1234567890123456789012345678901234567890",
    ],
)
def test_no_command_of_git_would_run_anything(ground: Ground, command: str) -> None:
    """Those that foredeck does not use, too: what git reads is not the repository's to say."""
    make_racy(ground)
    with opened_git(str(ground.repo)) as git:
        git.run(*command.split(), until=until())
    assert ground.ran() == []


def test_a_hidden_bare_repository_is_a_folder(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cloned, so that the configuration of the whole is git's own."""
    clone = ground.root / "clone"
    plain_git(ground.repo, "-c", "core.hooksPath=/dev/null", "add", "-f", "docs")
    (ground.repo / ".git" / "config").write_text("[core]\n")
    plain_git(ground.repo, "add", "-f", "docs")
    plain_git(ground.repo, "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", "docs")
    plain_git(ground.root, "clone", "-q", str(ground.repo), str(clone))
    ground.ran()
    for folder, name in ((clone, "docs"), (clone / "docs", ".")):
        monkeypatch.chdir(folder)
        assert main(["index", name]) == 0
        assert "guide.md" not in capsys.readouterr().err
        assert ground.ran() == []


def test_gits_own_variables_do_not_lead_elsewhere(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = ground.user / "project" / ".git"
    monkeypatch.setenv("GIT_DIR", str(secret))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(secret / "objects"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", ground.program("external"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", ground.program("counted"))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", f"'core.fsmonitor={ground.program('passed')}'")
    monkeypatch.setenv("PAGER", ground.program("pager"))
    read_as_committed(ground)
    see_what_a_command_did(ground)
    assert ground.ran() == []


def link_the_folder(ground: Ground, place: Path) -> None:
    (place / ".git").symlink_to(ground.user / "project" / ".git")


def name_the_folder(ground: Ground, place: Path) -> None:
    (place / ".git").write_text(f"gitdir: {ground.user / 'project' / '.git'}\n")


def pretend_to_be_a_worktree(ground: Ground, place: Path) -> None:
    own = place / "own" / "worktrees" / "x"
    own.mkdir(parents=True)
    (place / ".git").write_text("gitdir: own/worktrees/x\n")
    (own / "gitdir").write_text(f"{place}/.git\n")
    (own / "HEAD").write_text("ref: refs/heads/main\n")
    (own / "commondir").write_text(f"{ground.user / 'project' / '.git'}\n")


def share_its_commits(ground: Ground, place: Path) -> None:
    plain_git(place, "init", "-q", "-b", "main")
    (place / ".git" / "commondir").write_text(f"{ground.user / 'project' / '.git'}\n")


def link_its_parts(ground: Ground, place: Path) -> None:
    git = place / ".git"
    git.mkdir()
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "config").write_text("")
    for name in ("refs", "objects"):
        (git / name).symlink_to(ground.user / "project" / ".git" / name)


def take_its_branch(ground: Ground, place: Path) -> Path:
    """Begin a repository, whose branch is that of the user's project. Returns where the user's
    objects are."""
    plain_git(place, "init", "-q", "-b", "main")
    git = ground.user / "project" / ".git"
    (place / ".git" / "refs" / "heads" / "main").symlink_to(git / "refs" / "heads" / "main")
    return git / "objects"


def borrow_its_objects(ground: Ground, place: Path) -> None:
    objects = take_its_branch(ground, place)
    (place / ".git" / "objects" / "info" / "alternates").write_text(f"{objects}\n")


def link_its_objects(ground: Ground, place: Path) -> None:
    for each in take_its_branch(ground, place).iterdir():
        if len(each.name) == 2:
            (place / ".git" / "objects" / each.name).symlink_to(each)


@pytest.mark.parametrize(
    "pretend",
    [
        *(link_the_folder, name_the_folder, pretend_to_be_a_worktree, share_its_commits),
        *(link_its_parts, borrow_its_objects, link_its_objects),
    ],
    ids=lambda pretend: pretend.__name__,
)
def test_another_project_of_the_users_shows_nothing(
    ground: Ground, pretend: Callable[[Ground, Path], None]
) -> None:
    place = ground.repo / "inner"
    place.mkdir()
    pretend(ground, place)
    users = project_of(str(ground.user / "project"), HERE)
    assert project_of(str(place), HERE) != users
    shown = plain_git(place, "show", "HEAD:plan.md").stdout.decode()
    assert SECRET in shown
    try:
        with opened_git(str(place)) as git:
            shown = git.run("show", "HEAD:plan.md", until=until()).out.decode()
    except GitUnusable:
        shown = ""
    assert SECRET not in shown


def test_a_git_folder_whose_links_lead_into_loops_is_none(ground: Ground) -> None:
    place = ground.repo / "inner" / ".git"
    place.mkdir(parents=True)
    (place / "HEAD").write_text("ref: refs/heads/main\n")
    (place / "config").write_text("")
    for name in ("refs", "objects"):
        (place / name).symlink_to(name)
    with suppress(GitUnusable), opened_git(str(place.parent)) as git:
        assert git.run("log", until=until()).code != 0


def test_git_that_waits_for_a_pipe_is_ended(ground: Ground) -> None:
    (ground.repo / ".git" / "packed-refs").unlink(missing_ok=True)
    (ground.repo / ".gitignore").unlink(missing_ok=True)
    os.mkfifo(ground.repo / ".gitignore")
    with pytest.raises(git_process.GitTimeout), opened_git(str(ground.repo)) as git:
        git.run("ls-files", "--others", "--exclude-standard", until=time.monotonic() + 0.5)


def test_only_one_module_starts_git() -> None:
    """Programs are started by a list of arguments, the first of which is the name."""
    starting = set()
    for module in ENGINE.rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text())):
            first = node.elts[0] if isinstance(node, ast.List) and node.elts else None
            if isinstance(first, ast.Constant) and str(first.value).split(" ")[0] == "git":
                starting.add(module.relative_to(ENGINE).as_posix())
    assert starting == {"sources/git_process.py"}
    shim = [path for path in SHIM.rglob("*.ts") if "test" not in path.relative_to(SHIM).parts]
    assert [path for path in shim if re.search(r"""["'`]git\b""", path.read_text())] == []
