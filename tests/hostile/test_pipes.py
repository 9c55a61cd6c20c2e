"""Pipes and devices where a file is expected: nothing waits for them."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import foredeck
from foredeck.regular_files import (
    NotRegular,
    TooLarge,
    open_regular,
    open_to_append,
    open_to_read,
    read_regular,
    require_regular,
)
from foredeck.sources.filesystem import FilesystemMap
from foredeck.sources.projects import project_of
from hostile.ground import Ground

ENGINE = Path(foredeck.__file__).parent
PATIENCE_S = 60
"""Only what waits for a pipe gets there."""

OPENED_OTHERWISE = {
    "cli/main.py": "the null device",
    "cli/person.py": "the terminal, and the kernel's /proc",
    "store/at_work.py": "a new file",
    "cli/import_command.py": "what the user names, such as <(gunzip -c FILE)",
    "cli/purge_command.py": "a session file of the host's",
    "model/own_tools.py": "of this package",
    "observations/lease.py": "the kernel's /proc",
    "regular_files.py": "",
    "rpc/wire.py": "the null device",
    "sources/looking.py": "the kernel's /proc",
    "store/purging.py": "a draft of our own",
    "store/location.py": "new files, /proc/mounts, folders",
    "timeline/states.py": "a new file",
    "xtdb/installing.py": "the node's jars",
    "xtdb/node": "the node's data",
    "xtdb/runtime.py": "the node's jars",
}
"""Modules that open something by name without `regular_files`, and what that is."""

OPENERS = {"open", "read_text", "read_bytes"}


def test_what_is_opened_by_name_is_opened_in_one_way() -> None:
    others = set()
    for module in ENGINE.rglob("*.py"):
        name = module.relative_to(ENGINE).as_posix()
        if not name.startswith(("evaluation/", *OPENED_OTHERWISE)) and any(
            _opens(node) for node in ast.walk(ast.parse(module.read_text()))
        ):
            others.add(name)
    assert others == set()


def _opens(node: ast.AST) -> bool:
    """Whether this is `open(...)`, `os.open(...)`, or a method of a path that opens it."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name):
        return node.func.id == "open"
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in OPENERS:
        return False
    given = [value.value for value in node.args if isinstance(value, ast.Constant)]
    owner = node.func.value
    is_of_os = isinstance(owner, ast.Name) and owner.id == "os"
    return (
        is_of_os
        or node.func.attr != "open"
        or any(mode in ("rb", "r", "a", "ab") for mode in given)
    )


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_only_regular_files_are_opened(tmp_path: Path, make) -> None:
    path = tmp_path / "it"
    make(path)
    for use in (read_regular, require_regular, open_to_append, open_regular):
        with pytest.raises(NotRegular):
            use(path)


def test_a_link_is_followed_unless_it_may_not_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"bytes")
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "link") == b"bytes"
    with pytest.raises(OSError, match="link"):
        open_to_read(tmp_path / "link", follow=False)


def test_a_file_is_read_to_a_bound(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"bytes")
    assert read_regular(tmp_path / "file", 5) == b"bytes"
    with pytest.raises(TooLarge):
        read_regular(tmp_path / "file", 4)


def foredeck_run(home: Path, cwd: Path, *arguments: str, given: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-m", "foredeck.cli.main", *arguments],
        cwd=cwd,
        env={**os.environ, "FOREDECK_HOME": str(home)},
        input=given,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout + done.stderr


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocol": 2, "shim": "0", "host": {"name": "pi", "version": "1"}, "trusted": True},
}


@pytest.mark.parametrize("place", ["pipe", "zero"])
def test_an_engine_starts_in_a_folder_whose_git_folder_is_none(ground: Ground, place: str) -> None:
    cwd = ground.repo / place
    params = {**INITIALIZE["params"], "cwd": str(cwd)}
    opened = {"session": "s", "file": None, "cwd": str(cwd), "reason": "startup", "parent": None}
    asked = [
        {**INITIALIZE, "params": params},
        {"jsonrpc": "2.0", "id": 2, "method": "session/open", "params": opened},
    ]
    given = "".join(json.dumps(line) + "\n" for line in asked)
    said = foredeck_run(ground.root / "home", cwd, "engine", given=given)
    answers = [json.loads(line) for line in said.split("\n") if line.startswith("{")]
    by_id = {answer["id"]: answer for answer in answers if "id" in answer}
    assert by_id[2]["result"]["session"] == "s"
    warned = str(by_id[1]["result"]["warnings"])
    assert ("it is a named pipe, not a file" in warned) is (place == "pipe")


def test_a_pipe_that_another_user_left_in_a_shared_folder_is_passed_over(ground: Ground) -> None:
    shared = ground.root / "shared"
    (shared / "mine").mkdir(parents=True)
    os.mkfifo(shared / ".git")
    files = FilesystemMap("here")
    assert project_of(str(shared / "mine"), files).root == str(shared / "mine")


@pytest.mark.parametrize(
    "name", ["user.key", "foredeck.db", "filesystem-id", "derived", "switches"]
)
def test_the_state_folder_may_hold_anything(ground: Ground, name: str) -> None:
    home = ground.root / "home"
    home.mkdir(mode=0o700)
    os.mkfifo(home / name)
    for command in (("doctor",), ("sessions",), ("memory", "show"), ("index", "src")):
        foredeck_run(home, ground.repo, *command)
