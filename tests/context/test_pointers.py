"""`activate` on what is no file on a disk: a file as of a commit, a URL."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from context.conftest import NewHost
from context.driver import Host
from context.messages import lines
from context.scenes import context_tool, use
from context.sent import last
from foredeck.errors import ToolError
from foredeck.store.erasing import plan_forgetting
from with_git import git

OLD, NEW = lines(30, "old"), lines(30, "new")


@pytest.fixture
def host(new_host: NewHost, tmp_path: Path) -> Host:
    """A session in a repository with two commits of one note."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "-q")
    for text in (OLD, NEW):
        (repo / "a.md").write_text(f"[[b]] {text}")
        git(repo, "add", ".")
        git(repo, "commit", "-qm", "as it was")
    return new_host(disk=True, cwd=str(repo)).begin()


def test_a_file_as_of_a_commit_comes_into_view(host: Host) -> None:
    sent = context_tool(host, "a1", "activate", "git:HEAD~1:a.md")
    name = last(sent).partition("\n")[0]
    assert last(sent) == f"{name}\n[[b]] {OLD}"
    commit = git(Path(host.cwd), "rev-parse", "HEAD~1").strip()
    entry = host.state.objects.index.entries[int(name[1:])]
    assert (entry.type, entry.label) == ("file", f"git:{commit[:12]}:a.md")
    again = context_tool(host, "a2", "activate", f"git:{commit}:a.md")
    assert last(again) == f"{name} is above."
    part = context_tool(host, "a3", "activate", f"git:{commit[:12]}:a.md chars 1-5")
    assert "[[b]]" in last(part)


def test_it_is_another_object_than_the_file_and_no_note(host: Host) -> None:
    read = use(host, "r1", "read", f"[[b]] {NEW}", path="a.md")
    sent = context_tool(host, "a1", "activate", "git:HEAD:a.md")
    assert read.text(2).partition("\n")[0] != sent.text(4).partition("\n")[0]
    assert len(host.store.query("file")) == 2
    linked = host.tool("a2", "activate", id="a.md", show="links")["content"][0]["text"]
    past = host.tool("a3", "activate", id="git:HEAD:a.md", show="links")["content"][0]["text"]
    assert 'Link "b" leads nowhere yet.' in linked
    assert "leads nowhere" not in past
    assert past.endswith('toolcall "activate git:HEAD:a.md" (reads v1)')


def test_what_git_does_not_have_says_so_and_stores_nothing(host: Host) -> None:
    with pytest.raises(ToolError, match=r"There is no 'b\.md' in HEAD"):
        host.tool("a1", "activate", id="git:HEAD:b.md")
    with pytest.raises(ToolError, match="git knows no 'gone'"):
        host.tool("a2", "activate", id="git:gone:a.md")
    with pytest.raises(ToolError, match=r"A file as of a commit goes by git:HEAD~1:a\.md\."):
        host.tool("a3", "activate", id="HEAD~1:a.md")
    assert host.store.query("file") == []


def test_a_url_is_listed_with_a_note_and_nothing_is_fetched(host: Host) -> None:
    url = "https://example.com/spec.pdf#page=3"
    sent = context_tool(host, "a1", "activate", url)
    told = last(sent)
    assert "it is only pointed to, and nothing is fetched" in told
    (head,) = host.store.query("pointer")
    ordinal = host.state.objects.index.by_object[head.id]
    assert host.state.objects.index.by_label[url] == ordinal
    assert host.state.chat.branch.sets.innermost(ordinal) == "inactive"
    shown = host.tool("a2", "activate", id=url, show="metadata")
    assert shown["content"][0]["text"] == f"@{ordinal} pointer {url}"
    (plan,) = plan_forgetting(host.store, [host.session])
    assert head.id in plan.documents
