"""The hostile repository does what it says: otherwise the tests beside this one prove nothing."""

from __future__ import annotations

import stat

from hostile.ground import SECRET, Ground, plain_git


def test_plain_git_runs_what_the_repository_names(ground: Ground) -> None:
    plain_git(ground.repo, "status")
    cleaning = {"filter.hostile.clean", "filter.spoken.process", "filter.with=sign.clean"}
    assert {"core.fsmonitor", *cleaning} <= set(ground.ran())
    plain_git(ground.repo, "blame", "src/app.py")
    assert "diff.hostile.textconv" in ground.ran()
    plain_git(ground.repo, "diff", "--ext-diff", "src")
    assert "diff.hostile.command" in ground.ran()
    plain_git(ground.repo, "update-ref", "refs/heads/other", "HEAD")
    assert "hooks.reference-transaction" in ground.ran()


def test_plain_git_takes_a_folder_of_a_clone_for_a_repository(ground: Ground) -> None:
    plain_git(ground.repo / "docs", "ls-files", "--others")
    assert ground.ran() == ["bare.fsmonitor"]


def test_links_lead_to_what_is_the_users(ground: Ground) -> None:
    for name in ("notes/monday.md", ".pi/notes/keys.md", "src/keys.txt"):
        assert SECRET in (ground.repo / name).read_text()
    listed = plain_git(ground.repo / "elsewhere", "show", "HEAD:plan.md")
    assert SECRET in listed.stdout.decode()


def test_pipes_stand_where_files_are_expected(ground: Ground) -> None:
    for name in ("pipe/.git", "pipe/.pi/foredeck.toml", ".pi/notes/pipe.md"):
        assert stat.S_ISFIFO((ground.repo / name).stat().st_mode)
