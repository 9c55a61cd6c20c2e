"""An agent whose tools work in a container, with the project mounted from this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from context.conftest import NewHost
from context.driver import Host
from context.messages import assistant, calls, lines, result
from context.scenes import ask, context_tool
from context.sent import Sent, last
from foredeck.errors import ToolError
from foredeck.model.documents import FileDocument
from foredeck.sources.filesystem import default_filesystem_id

TEXT = lines(30)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """The project on this machine; the agent knows it as /workspace."""
    repo = (tmp_path / "repo").resolve()
    repo.mkdir()
    (repo / "a.txt").write_text(TEXT)
    return repo


@pytest.fixture
def host(repo: Path, new_host: NewHost) -> Host:
    return new_host(
        cwd="/workspace",
        disk=True,
        sources={
            "mounts": [{"prefix": "/workspace", "host_path": str(repo)}],
            "sandboxed": True,
            "filesystem_id": "container-1",
        },
    ).begin()


def read(host: Host, id: str, path: str, content: str) -> Sent:
    """The model reads a file; the engine is told as soon as the tool has run."""
    given = result(id, "read", content)
    host.observe(given, {"path": path})
    host.add(assistant(calls(id, "read", path=path)), given)
    return host.call()


def files(host: Host) -> dict[str, FileDocument]:
    """Every file object, by path."""
    heads = host.store.query("file")
    found = [host.store.get(head.id, FileDocument) for head in heads]
    return {file.source.path: file for file in found if file and file.source}


def test_a_mounted_file_is_that_of_this_machine(host: Host, repo: Path) -> None:
    read(host, "r1", "/workspace/a.txt", TEXT)
    (path, file), *more = files(host).items()
    assert (path, more, file.content) == (str(repo / "a.txt"), [], TEXT)
    assert file.source.filesystemId == default_filesystem_id(host.home)


def test_a_file_of_the_container_is_never_looked_for_here(host: Host, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("of this machine\n" * 20)
    read(host, "r1", str(secret), TEXT)
    file = files(host)[str(secret)]
    assert (file.source.filesystemId, file.content) == ("container-1", TEXT)


@pytest.mark.parametrize("name", ["/workspace/a.txt", "a.txt", "sub/../a.txt"])
@pytest.mark.parametrize("tool", ["activate", "pin", "unpin", "deactivate"])
def test_the_model_names_files_as_its_container_does(host: Host, name: str, tool: str) -> None:
    read(host, "r1", "/workspace/a.txt", TEXT)
    assert context_tool(host, "c1", tool, name).text(4).startswith("@3 ")


def test_a_notice_names_the_file_as_the_container_does(host: Host, repo: Path) -> None:
    read(host, "r1", "/workspace/a.txt", TEXT)
    (repo / "a.txt").write_text(lines(30, "new"))
    host.opened.reconcile()
    sent = ask(host, "What now?")
    notice = "[foredeck] @3 /workspace/a.txt changed on disk: the copy above is old."
    assert notice in last(sent)
    assert str(repo) not in str(sent.messages)


def test_an_error_names_files_as_the_container_does(host: Host) -> None:
    read(host, "r1", "/workspace/a.txt", TEXT)
    with pytest.raises(ToolError, match=r"Nearest: @3 /workspace/a\.txt\."):
        host.tool("c1", "activate", id="/workspace/b.txt")
