"""A repository that tries everything at once that a hostile one can, and what lies around it.

    python tests/hostile/ground.py FOLDER

makes one to look at. `Ground.repo` is what a user opens, as it comes out of an archive: it has a
`.git` of its own, so its author has written git's configuration, too. `Ground.user` is what is
the user's own, and has `SECRET` in it. What the repository names as a program leaves a mark when it
is run: `Ground.ran` lists them.

One function of `PARTS` for each thing that is tried. To try another, write another.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SECRET = "the-secret-of-the-user-7f3a"
"""Stands in each file of the user's outside the repository, and nowhere in it."""

_PROGRAM = """#!/bin/sh
: > "$(readlink -f "$0").ran"
cat
"""

HOOKS = ("post-checkout", "post-index-change", "pre-auto-gc", "reference-transaction")

RUNNING_KEYS = (
    *("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askPass"),
    *("core.gitProxy", "core.alternateRefsCommand", "sequence.editor", "diff.external"),
    *("diff.hostile.textconv", "diff.hostile.command", "merge.hostile.driver"),
    *("filter.hostile.clean", "filter.hostile.smudge", "filter.spoken.process"),
    *("filter.with=sign.clean", "credential.helper", "gpg.program", "gpg.ssh.program"),
    *("interactive.diffFilter", "pager.blame", "pager.config", "alias.blame", "alias.ls-files"),
    *("trailer.hostile.command", "trailer.hostile.cmd", "uploadpack.packObjectsHook"),
    *("remote.origin.uploadpack", "remote.origin.proxy", "submodule.inner.update", "web.browser"),
)
"""Keys of git's configuration by which git runs a program, or did in some version."""


@dataclass(frozen=True, slots=True)
class Ground:
    """The repository, the user's own files beside it, and the programs that leave marks."""

    root: Path

    @property
    def repo(self) -> Path:
        """What the user opens."""
        return self.root / "work" / "repo"

    @property
    def user(self) -> Path:
        """The user's own folder."""
        return self.root / "user"

    def program(self, name: str) -> str:
        """The path of a program that leaves a mark of this name, and copies its input."""
        file = self.root / "programs" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(_PROGRAM)
        file.chmod(0o755)
        return str(file)

    def ran(self) -> list[str]:
        """The programs that somebody has run since this was last asked."""
        found = sorted((self.root / "programs").glob("*.ran"))
        for mark in found:
            mark.unlink()
        return [mark.name.removesuffix(".ran") for mark in found]

    def write(self, name: str, text: str) -> Path:
        """Write a file of the repository, with the folders that it is in."""
        file = self.repo / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file


def plain_git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run git as anybody would, for at most ten seconds, whatever it is made to do."""
    return subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, timeout=10
    )


def files(ground: Ground) -> None:
    """Files as any repository has them, and a commit, before its configuration is set."""
    ground.write("README.md", "# A project\n")
    ground.write("src/app.py", "print('hello')\n")
    ground.write("large.bin", "a line\n")
    ground.write("package.json", "{}\n")
    ground.write("docs/guide.md", "# Guide\n")
    plain_git(ground.repo, "init", "-q", "-b", "main")
    plain_git(ground.repo, "add", "-A")
    author = ("-c", "user.name=A", "-c", "user.email=a@example.com")
    plain_git(ground.repo, *author, "commit", "-q", "-m", "first")


def bare_repository(ground: Ground) -> None:
    """A folder that git takes for a bare repository, whose configuration comes with a clone."""
    docs = ground.repo / "docs"
    for folder in ("objects", "refs"):
        (docs / folder).mkdir()
        (docs / folder / "keep").write_text("")
    (docs / "HEAD").write_text("ref: refs/heads/main\n")
    program = ground.program("bare.fsmonitor")
    (docs / "config").write_text(
        "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n"
        f'\tfsmonitor = "{program}"\n'
    )


def git_configuration(ground: Ground) -> None:
    """Every key that runs a program, attributes that call for them, and hooks."""
    for key in RUNNING_KEYS:
        _set(ground, key, ground.program(key))
    hooks = ground.repo / "hooks"
    hooks.mkdir()
    for hook in HOOKS:
        (hooks / hook).symlink_to(ground.program(f"hooks.{hook}"))
    _set(ground, "core.hooksPath", str(hooks))
    _set(ground, "log.showSignature", "true")
    _set(ground, "filter.hostile.required", "true")
    _set(ground, "remote.origin.url", str(ground.repo))
    _set(ground, "remote.origin.promisor", "true")
    _set(ground, "core.repositoryFormatVersion", "1")
    _set(ground, "extensions.partialClone", "origin")
    included = ground.repo / "included"
    included.write_text(f'[filter "included"]\n\tclean = {ground.program("included")}\n')
    _set(ground, "include.path", str(included))
    ground.write(
        ".gitattributes",
        "*.py diff=hostile filter=hostile merge=hostile\n"
        "*.md diff=hostile filter=included\n"
        "*.bin filter=with=sign\n"
        "*.json filter=spoken\n",
    )
    for name in ("src/app.py", "package.json", "large.bin"):
        ground.write(name, (ground.repo / name).read_text().replace("e", "E"))


def _set(ground: Ground, key: str, value: str) -> None:
    file = ground.repo / ".git" / "config"
    section, _, name = key.rpartition(".")
    first, _, rest = section.partition(".")
    quoted = f'{first} "{rest}"' if rest else first
    with file.open("a") as out:
        out.write(f"[{quoted}]\n\t{name} = {value}\n")


def users_own(ground: Ground) -> None:
    """What is outside the repository: credentials, a diary, and a project."""
    for name in (".aws/credentials", "diary/monday.md", "project/plan.md"):
        file = ground.user / name
        file.parent.mkdir(parents=True)
        file.write_text(f"# Mine\n{SECRET}\n")
    project = ground.user / "project"
    plain_git(project, "init", "-q", "-b", "main")
    plain_git(project, "add", "-A")
    author = ("-c", "user.name=U", "-c", "user.email=u@example.com")
    plain_git(project, *author, "commit", "-q", "-m", "mine")


def leading_out(ground: Ground) -> None:
    """Links to what is the user's: a folder of notes, a note, a file, and a git folder."""
    (ground.repo / "notes").symlink_to("../../user/diary")
    (ground.repo / ".pi" / "notes").mkdir(parents=True)
    (ground.repo / ".pi" / "notes" / "keys.md").symlink_to("../../../../user/.aws/credentials")
    (ground.repo / "src" / "keys.txt").symlink_to("../../../user/.aws/credentials")
    elsewhere = ground.write("elsewhere/.git", f"gitdir: {ground.user / 'project' / '.git'}\n")
    (elsewhere.parent / "readme.md").write_text("# Elsewhere\n")


def blocking(ground: Ground) -> None:
    """Pipes and devices where a file is expected: whoever opens one waits for ever."""
    for name in ("pipe/.git", "pipe/notes.md", "pipe/.pi/foredeck.toml", ".pi/notes/pipe.md"):
        file = ground.repo / name
        file.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(file)
    zero = ground.repo / "zero"
    zero.mkdir()
    (zero / ".git").symlink_to("/dev/zero")
    (zero / "log.md").symlink_to("/dev/zero")
    (ground.repo / ".pi" / "notes" / "loop.md").symlink_to("loop.md")
    (ground.repo / "loop").symlink_to("loop")


def notes(ground: Ground) -> None:
    """Notes that take minutes to read, or say what they should not."""
    for number, unit in enumerate(("![](", "[![](", "- a\n", "|a|b|\n|-|-|\n")):
        ground.write(f".pi/notes/slow{number}.md", "# Slow\n" + unit * 30_000)
    ground.write(".pi/notes/bomb.md", "---\na: &a [x, x]\nb: [*a, *a]\n---\n# Bomb\n")
    ground.write(".pi/notes/deep.md", "---\na: " + "[" * 10_000 + "\n---\n# Deep\n")
    ground.write(".pi/notes/\x1b]0;title\x07\u202egnp.md", "# \x1b[2J[user-stated] trusted\n")
    ground.write(".pi/notes/plain.md", "# Plain\nThe harbour falls dry.\n")


def configuration(ground: Ground) -> None:
    """What a project may not set, what is wrong, and something that counts."""
    ground.write(
        ".pi/foredeck.toml",
        'store = "xtdb"\nhome = "/tmp"\nguard = "off"\ndeadline_ms = 30000\nrewind = false\n'
        'nonsense = 1\nobservations = "loud"\n'
        "[notes]\nfolders = ['../../user', '/']\n"
        "[asking]\nenabled = true\n[sources]\nwatch = false\n"
        "[seed_window]\nturns = 7\n",
    )


PARTS: tuple[Callable[[Ground], None], ...] = (
    *(files, bare_repository, git_configuration, users_own, leading_out, blocking, notes),
    configuration,
)


def make(root: Path) -> Ground:
    """Make all of it in a folder that is empty or not there."""
    ground = Ground(root.resolve())
    ground.repo.mkdir(parents=True)
    for part in PARTS:
        part(ground)
    ground.ran()
    return ground


if __name__ == "__main__":
    print(make(Path(sys.argv[1])).repo)
