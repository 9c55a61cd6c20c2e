"""Every command that README and docs/ give as an example, run on a store made for it.

An example exits with 0 and prints what the page says that it prints: JSON where it asks for JSON,
the answer that the page shows below a `$`. What needs more than a store is named below, with what
tests it instead. What the text names in passing is there: commands with their options, what is
typed in Pi, settings.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cli.stored_session import call, result, text
from foredeck.cli.main import build_parser, main
from foredeck.cli.registry import COMMANDS
from foredeck.config import Config
from foredeck.config.keys import all_keys, sections
from foredeck.store.clock import DAY_MS
from foredeck.store.place import open_store
from foredeck_lab.replay.options import ReplayOptions
from foredeck_lab.replay_command import replay
from foredeck_xtdb.node import private_node
from foredeck_xtdb.runtime import Runtime
from observations.desk import noted
from replay.recordings import write_session
from search.sessions import Talk

REPOSITORY = Path(__file__).parents[2]
SESSION = "0199aaaa-0000-7000-8000-000000000001"
OBSERVED = "0197a3bb-0000-7000-8000-000000000002"

ELSEWHERE = {
    "scripts/": "the scripts themselves",
    "cd tests": "builders' commands",
    "pi ": "Pi (tests/realpi)",
    "FOREDECK_SEED_WINDOW__PER_TURN=8 pi": "Pi (tests/realpi)",
    "FOREDECK_SOURCES__MOUNTS=": "Pi (tests/realpi)",
    "pip install": "packaging (tests/test_installed.py)",
    "foredeck bench": "builders' commands (tests/bench)",
    "../.venv/bin/python -m goldens": "builders' commands (tests/goldens)",
    "foredeck eval": "a model (tests/evaluation)",
    "foredeck proxy": "an agent (tests/proxy)",
    "foredeck carry": "an agent (tests/carry)",
    "foredeck ui": "a server that runs until it is stopped (tests/ui)",
    "curl": "the inspector's server (tests/ui)",
    "tar xzf pi-foredeck-": "a bundle (tests/bench/test_bundling.py)",
    "foredeck xtdb": "a node (tests/cli/test_xtdb_command.py)",
    "foredeck migrate": "a node (tests/cli/test_migrate_command.py)",
    "foredeck xtdb query": "a node (below)",
    "FOREDECK_STORE=xtdb": "a node",
    "export FOREDECK_XTDB": "a node",
    "foredeck restore SESSION --call": "a session of the real Pi (tests/realpi)",
    "foredeck replay ~/.pi/agent/sessions --policy half-full": "a policy of the reader's own",
    "python3 -m pip --python": "packaging, as above",
}
"""Examples by how they begin: what they need, and where that is tested."""

REFUSED = {
    "foredeck restore ~/foredeck-monday.db": (3, "holds a store already: --force renames it"),
    f"foredeck forget {SESSION}": (2, "confirm with --yes"),
    "foredeck purge --text sk-live-51H8": (2, "confirm with --yes"),
}
"""Examples that a person is asked about, or told what else to say: exit code and answer."""

BEFORE = {
    "foredeck restore ~/": "foredeck backup ~/foredeck-monday.db",
    "foredeck import app.jsonl": "foredeck export --project . app.jsonl",
    "foredeck import session": "foredeck export 0199aaaa session.foredeck.jsonl",
}
"""What another example has to do first, by how an example begins."""

PLACEHOLDERS = {
    "SESSION_OR_FILE": SESSION,
    "SESSION": SESSION,
    "FILE...": "recorded.jsonl",
    "FILE": "kept.out",
    "WORDS": "schema",
    "PATTERN": "sk-live-51H8",
}


def documented() -> Iterator[tuple[str, str, list[str]]]:
    """Page, command, and the lines that the page shows as its answer."""
    for page in [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]:
        for language, block in re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(), re.M | re.S):
            if language == "sh":
                whole = re.sub(r"'[^'\n]*\n[^']*'", lambda at: " ".join(at[0].split()), block)
                yield from ((page.name, line, []) for line in whole.splitlines() if line.strip())
            elif block.startswith("$ "):
                for each in block[2:].split("\n$ "):
                    command, *answer = each.splitlines()
                    yield page.name, command, answer


EXAMPLES = [
    pytest.param(command, id=f"{page}: {command.partition('#')[0].strip()}")
    for page, command, answer in documented()
    if not answer and not command.startswith(tuple(ELSEWHERE))
]


def recording(folder: Path) -> list[dict[str, Any]]:
    """Messages of a session of fifteen calls that writes src/main.ts three times."""
    config = "".join(f"line {number}\n" for number in range(80))
    program = "export function main() {\n  parse_config();\n}\n"
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Write the schema and retry with backoff in http_client."},
        call("toolu_00", "read", path=f"{folder}/src/config.py"),
        result("toolu_00", "read", config),
        call("toolu_01", "read", path=f"{folder}/docs/plan.md"),
        result("toolu_01", "read", "# Plan\n\nTo be done.\n"),
        call("toolu_02", "read", path=f"{folder}/src/app.py"),
        result("toolu_02", "read", "import http_client\n"),
    ]
    for number in range(3, 14):
        body = program.replace("main", f"main{number}") if number % 4 == 0 else None
        arguments = {"path": f"{folder}/src/main.ts", "content": body} if body else {}
        id, tool = f"toolu_{number:02}", "write" if body else "bash"
        messages.append(call(id, tool, **(arguments or {"command": f"echo {number}"})))
        said = f"Successfully wrote {len(body)} bytes to {folder}/src/main.ts" if body else "ok"
        messages.append(result(id, tool, said))
    messages.append({"role": "assistant", "content": text("Done."), "stopReason": "stop"})
    return messages


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's home with a project, a store, and what the examples name."""
    home = tmp_path_factory.mktemp("documented") / "home"
    app = home / "src" / "app"
    for name, content in {
        "src/main.ts": "export function main12() {\n  parse_config();\n}\n",
        "src/app.py": "import http_client\n",
        "src/config.py": "".join(f"line {number}\n" for number in range(80)),
        "docs/plan.md": "# Plan\n\nTo be done.\n",
        "README.md": "# App\n",
        "notes/tides.md": "---\ntags: [sea, project]\n---\n# Ebb and flow\n\n[[docs/plan.md]]\n",
        "notes/moon.md": "---\nparent: '[[notes/tides.md]]'\n---\n# A note\n\n[[Ebb and flow]]\n",
    }.items():
        (app / name).parent.mkdir(parents=True, exist_ok=True)
        (app / name).write_text(content)
    (home / "vault").mkdir()
    (home / "vault" / "one.md").write_text("# One\n")
    begun = int(time.time() * 1000) - 3 * DAY_MS
    for name in (
        *(".pi/agent/sessions/one.jsonl", "src/app/recorded.jsonl", f"{SESSION}.jsonl"),
        *(".claude/projects/app/one.jsonl", ".codex/sessions/one.jsonl"),
    ):
        file = home / name
        write_session(file, *recording(app), id=SESSION, cwd=str(app), start_ms=begun)
    (app / "old.jsonl.gz").write_bytes(gzip.compress(file.read_bytes()))
    done = replay([home / f"{SESSION}.jsonl"], ReplayOptions(), keep=home / "made")
    assert done["total"]["errors"] == 0, done
    state = home / ".local" / "state" / "foredeck"
    state.parent.mkdir(parents=True)
    shutil.move(home / "made" / SESSION, state)
    with closing(sqlite3.connect(state / "foredeck.db", isolation_level=None)) as db:
        db.execute("UPDATE tx SET time_ms = time_ms - ?", (3 * DAY_MS,))  # some ask for yesterday
    with closing(open_store(Config(home=state))) as store:
        Talk(store, OBSERVED)
        noted(store, 9, OBSERVED)
    assert main(["index", str(app / "notes"), "--home", str(state)]) == 0
    return home


@pytest.fixture
def app(kept: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The project as the current folder; what an example changes is put back."""
    shutil.copytree(kept, tmp_path / "kept", symlinks=True)
    monkeypatch.setenv("HOME", str(kept))
    for name in [name for name in os.environ if name.startswith(("XDG_", "FOREDECK_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "dot").write_text("#!/bin/sh\nexec cat\n")
    (programs / "dot").chmod(0o755)
    path = os.pathsep.join((str(programs), str(Path(sys.executable).parent), os.environ["PATH"]))
    monkeypatch.setenv("PATH", path)
    monkeypatch.chdir(kept / "src" / "app")
    yield kept / "src" / "app"
    shutil.rmtree(kept)
    shutil.copytree(tmp_path / "kept", kept, symlinks=True)


def run(line: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr; in this process, unless the line needs a shell."""
    if line.startswith("foredeck ") and not re.search(r"[|&]| mcp", line):
        arguments = [
            str(Path(word).expanduser()) if word.startswith("~") else word
            for word in shlex.split(line)[1:]
        ]
        return main(arguments), *capsys.readouterr()
    done = subprocess.run(
        ["sh", "-c", line], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.usefixtures("app")
@pytest.mark.parametrize("line", EXAMPLES)
def test_an_example_does_what_the_page_says(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = re.sub(r"\s+#.*", "", line)
    for name, value in PLACEHOLDERS.items():
        command = re.sub(rf"(?<![\w-]){re.escape(name)}(?!\w)", value, command)
    for begins, first in BEFORE.items():
        assert not command.startswith(begins) or run(first, capsys)[0] == 0
    expected, named = REFUSED.get(command, (0, ""))
    code, out, err = run(command, capsys)
    assert code == expected, err
    assert named in err
    assert "Traceback" not in err
    if "--json" in shlex.split(command):
        json.loads(out)


def test_documented_queries_find_something(
    app: Path, runtime: Runtime, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queries = [line for _, line, _ in documented() if line.startswith("foredeck xtdb query")]
    answers: list[Any] = []
    values = {"0199aaaa-...": SESSION, "/home/me/vault/notes/sea.md": f"{app}/docs/plan.md"}
    with private_node(tmp_path / "node", runtime) as node:
        running = node.running()
        token = f"xtdb.token_file={node.token_file}"
        copying = ["migrate", "sqlite", f"xtdb:{running.url}", "--set", token]
        assert main(copying) == 0, capsys.readouterr().err
        for line in queries:
            for shown, meant in values.items():
                line = line.replace(shown, meant)
            place = f" --url {running.url} --token-file {node.token_file} --json"
            capsys.readouterr()
            code, out, err = run(line + place, capsys)
            assert code == 0, err
            answers.append(json.loads(out)["rows"])
            assert answers[-1], line
    assert len(queries) >= 4
    commands = [rows for line, rows in zip(queries, answers, strict=True) if '"bash"' in line]
    # Each says what was run, and how it ended: calls of other tools have no command.
    assert all(
        command and status in ("ok", "fail") for (rows,) in [commands] for command, status in rows
    )


@pytest.mark.usefixtures("app")
def test_the_answers_that_a_page_shows_are_those_of_the_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Names of tasks differ from run to run; all else is as the page has it."""
    names: dict[str, str] = {}
    for _, command, shown in documented():
        if not shown:
            continue
        for name, made in names.items():
            command = command.replace(name, made)
        code, out, err = run(command, capsys)
        assert code == 0, err
        pattern = r"t-[0-9a-z]{4,}"
        pairs = zip(re.findall(pattern, "\n".join(shown)), re.findall(pattern, out), strict=True)
        names.update(pairs)
        for name, made in names.items():
            out = out.replace(made, name)
        assert out.splitlines() == shown
    assert names


def named_in_text(pattern: str) -> set[str]:
    """What stands in backticks on a page, outside of its examples."""
    pages = [REPOSITORY / "README.md", *(REPOSITORY / "docs").glob("*.md")]
    texts = (re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S) for page in pages)
    return {one for text in texts for one in re.findall(f"`({pattern})`", text)}


def options_of(parser: argparse.ArgumentParser, words: list[str]) -> set[str]:
    """Those of a command, and of its action where the next word is one."""
    found = {option for action in parser._actions for option in action.option_strings}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) and words and words[0] in action.choices:
            found |= options_of(action.choices[words[0]], words[1:])
    return found


def test_commands_named_in_the_text_have_these_options() -> None:
    named = named_in_text(r"foredeck [a-z][^`]*")
    for line in named:
        first, *rest = line.removeprefix("foredeck ").split()
        pair = f"{first} {rest[0]}" if rest else first
        command, words = (pair, rest[1:]) if pair in COMMANDS else (first, rest)
        assert command in COMMANDS, line
        options = options_of(build_parser(command), [command, *words])
        assert set(re.findall(r"(?<!\S)--[a-z-]+", line)) <= options, line
    assert len(named) > 100


def test_what_the_text_says_is_typed_in_pi_can_be() -> None:
    commands = json.loads((REPOSITORY / "ts-shim" / "commands.json").read_text())
    verbs = {name: {*command["verbs"]} for name, command in commands.items()}
    verbs["foredeck"] |= {*commands}  # also where another extension has the name
    named = named_in_text(r"/(?:foredeck|memory|tasks) [a-z][^`]*")
    for line in named:
        command, verb, *_ = line.removeprefix("/").split()
        assert verb in verbs[command], line
    assert len(named) > 20


def test_settings_named_in_the_text_are_there() -> None:
    for line in named_in_text(r"[a-z_]+\.[a-z_]+(?: = [^`]+)?"):
        key = line.partition(" ")[0]
        section, _, name = key.partition(".")
        is_module = name == "py"  # `working.py`, which is beside a section of that name
        assert is_module or key in all_keys() or section not in sections(), line
