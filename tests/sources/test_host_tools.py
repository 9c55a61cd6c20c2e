"""The formats of the host's own tools: the real ones run, and what they say is understood."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from work_folder import Work

from foredeck.model.documents import FileDocument
from foredeck.sources.filesystem import FilesystemMap
from foredeck.sources.recorded import FileSource
from foredeck.sources.snapshots import ToolEvent
from foredeck.sources.tool_calls import parse_read_range, touched_paths
from foredeck.store.protocol import Batch

MODULE = "node_modules/@earendil-works/pi-coding-agent/dist/index.js"
HOSTS = {"1.6.0": MODULE, "1.5.2": f".cache/pi-1.5.2/{MODULE}"}


class Host:
    """The host's tools, run in one process; `cwd` is the folder that they work in."""

    def __init__(self, node: Path, module: Path) -> None:
        driver = Path(__file__).with_name("host_tools.mjs")
        self.cwd = Path()
        self._process = subprocess.Popen(
            [node, driver, module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, tool: str, *, files: list[str] | None = None, **arguments: Any) -> ToolEvent:
        """Run a tool; returns what the engine would hear of it."""
        assert self._process.stdin
        assert self._process.stdout
        call = {"tool": tool, "input": arguments, "cwd": str(self.cwd), "files": files}
        self._process.stdin.write(json.dumps(call) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return ToolEvent(
            tool,
            arguments,
            answer["text"],
            answer.get("details"),
            bool(answer["error"]),
            str(self.cwd),
        )

    def close(self) -> None:
        self._process.communicate(timeout=30)


@pytest.fixture(scope="module", params=HOSTS)
def tools(request: pytest.FixtureRequest, checkout: Path) -> Iterator[Host]:
    node, module = checkout / "node_modules/.bin/node", checkout / HOSTS[request.param]
    if not (node.exists() and module.exists()):
        pytest.skip(f"Pi {request.param} is not installed: run scripts/setup")
    host = Host(node, module)
    yield host
    host.close()


@pytest.fixture
def host(tools: Host, work: Work) -> Host:
    tools.cwd = work.folder
    return tools


@pytest.mark.parametrize(
    "text",
    [
        "",
        "one",
        "one\n",
        "one\n\n\n",
        "".join(f"line {n}\n" for n in range(30)),
        "".join(f"line {n}\r\n" for n in range(30)),
        "tail\n\n[3 more lines in file. Use offset=4 to continue.]",
        "".join(f"{n}\n" for n in range(2500)),
        "".join(f"{'x' * 99} {n}\n" for n in range(1500)),
        "short\n" + "y" * 60_000 + "\nshort",
    ],
    ids=["empty", "one", "nl", "blank", "30", "crlf", "notice", "lines", "bytes", "long"],
)
def test_a_read_shows_the_lines_that_it_is_said_to_show(host: Host, work: Work, text: str) -> None:
    work.write("a.txt", text)
    lines = text.split("\n")
    for window in ({}, {"limit": 2}, {"offset": 2}, {"offset": 3, "limit": 5}, {"limit": 0}):
        event = host.run("read", path="a.txt", **window)
        if event.is_error:
            assert window.get("offset", 1) > len(lines)
            continue
        shown = parse_read_range(event.input, event.text)
        assert shown.first == window.get("offset", 1)
        assert shown.text == "\n".join(lines[shown.first - 1 : shown.last])
        certain = shown.last - shown.first + 1 < window.get("limit", math.inf)
        whole = shown.text == text and shown.first == 1 and shown.last > 0
        assert shown.complete == (whole and certain)
        assert shown.total in (None, len(lines))


def test_an_image_is_binary(host: Host, work: Work) -> None:
    work.write(
        "a.png",
        bytes.fromhex(
            "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
            "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
        ),
    )
    event = host.run("read", path="a.png")
    assert parse_read_range(event.input, event.text) is None


EDITS: dict[str, tuple[str, list[dict[str, str]]]] = {
    "plain": ("a\nb\nc\n", [{"oldText": "b", "newText": "B\nB"}]),
    "two": ("a\nb\nc\n", [{"oldText": "c", "newText": "C"}, {"oldText": "a", "newText": ""}]),
    "crlf": ("a\r\nb\r\nc", [{"oldText": "a\nb", "newText": "x\ny\nz"}]),
    "bom": ("\ufeffa\nb\n", [{"oldText": "a", "newText": "A"}]),
    "quotes": ("\u2018q\u2019  \nit\u2019s \u201ca\u201d \u2013 b \nend", [
        {"oldText": "it's \"a\" - b", "newText": "plain"}
    ]),
    "width": ("\uff21\uff22\nrest\u00a0x\n", [{"oldText": "AB", "newText": "ab"}]),
    "mixed": ("x \u201ca\u201d y\nfoo\nz \u201cb\u201d\n", [
        {"oldText": 'x "a"', "newText": "X"},
        {"oldText": "foo", "newText": "bar"},
    ]),
    "surplus": ("a\n", [{"oldText": "a\r\n", "newText": "b\r\n"}]),
}  # fmt: skip


@pytest.mark.parametrize("name", EDITS)
def test_a_replayed_edit_gives_what_the_tool_wrote(host: Host, work: Work, name: str) -> None:
    text, edits = EDITS[name]
    source = FileSource(work.store, FilesystemMap("box", cwd=str(work.folder)))
    for event in (
        host.run("write", path="a.txt", content=text),
        host.run("edit", path="a.txt", edits=edits),
    ):
        assert not event.is_error, event.text
        (snapshot,) = source.after_tool(event)
        assert snapshot.document is not None
        work.store.commit(Batch(puts=[snapshot.document]))
    document = work.store.get(snapshot.object_id, FileDocument)
    assert document.content == (work.folder / "a.txt").read_bytes().decode()


def test_a_write_and_a_read_are_seen(host: Host, work: Work) -> None:
    (written,) = work.disk.after_tool(host.run("write", path="new/a.txt", content="x\n"))
    assert (written.role, written.state) == ("written", "text")
    (read,) = work.disk.after_tool(host.run("read", path="@new/a.txt"))
    assert (read.role, read.object_id) == ("read", written.object_id)


def listed(host: Host, event: ToolEvent) -> set[str]:
    return {str((host.cwd / touch.path).resolve()) for touch in touched_paths(event, 1000)}


@pytest.mark.parametrize("limit", [None, 2])
def test_ls_names_what_is_there(host: Host, work: Work, limit: int | None) -> None:
    for name in ("src/a.py", "src/.hidden", "src/with space", "src/deep/b.py"):
        work.write(name)
    event = host.run("ls", path="src", **({"limit": limit} if limit else {}))
    expected = {str(work.folder / "src" / n) for n in ("a.py", ".hidden", "with space")}
    found = listed(host, event)
    assert found == expected if limit is None else found < expected
    assert listed(host, host.run("ls", path="nowhere")) == set()
    (work.folder / "empty").mkdir()
    assert listed(host, host.run("ls", path="empty")) == set()


@pytest.mark.parametrize("limit", [1000, 2])
def test_find_names_what_is_there(host: Host, work: Work, limit: int) -> None:
    files = [work.write(name) for name in ("src/a.py", "src/deep/b.py", "src/c d.py")]
    event = host.run("find", pattern="*.py", path="src", limit=limit, files=[*files])
    assert listed(host, event) == set(files[:limit])
    assert listed(host, host.run("find", pattern="*.py", files=[])) == set()


@pytest.mark.skipif(shutil.which("rg") is None, reason="needs ripgrep (rg) on the path")
def test_grep_names_what_it_hit(host: Host, work: Work) -> None:
    files = [work.write(name, "x\nhit: 1\ny\n") for name in ("src/a.py", "src/deep/b.py")]
    for window in ({}, {"context": 1}, {"limit": 1}):
        found = listed(host, host.run("grep", pattern="hit", path="src", **window))
        assert found == set(files) if "limit" not in window else found < set(files)
    assert listed(host, host.run("grep", pattern="hit", path="src/a.py")) == {files[0]}
    assert listed(host, host.run("grep", pattern="nowhere")) == set()


def test_bash_is_seen_through(host: Host, work: Work) -> None:
    event = host.run("bash", command="mkdir -p out && echo one > out/a.txt && ls -l out/a.txt")
    assert [(s.path, s.state) for s in work.disk.after_tool(event)] == [
        (str(work.folder / "out" / "a.txt"), "listed")
    ]
    many = host.run("bash", command="seq 1 5000")
    assert work.disk.after_tool(many) == []
