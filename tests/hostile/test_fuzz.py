"""Names, notes and settings that nobody would write, so many of them and the same each time."""

from __future__ import annotations

import json
import os
import random
from contextlib import closing, suppress
from operator import attrgetter
from pathlib import Path

import pytest

from foredeck.cli.main import main
from foredeck.config import Config, load_config
from foredeck.config.keys import all_keys
from foredeck.engine.engine import Engine
from foredeck.errors import ForedeckError
from foredeck.hosts.protocol import ToolObservedParams, ToolPrepareParams
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.model.documents import FileDocument
from foredeck.model.sources import path_of
from foredeck.notes.markdown import parse_note
from foredeck.store.place import open_store
from hostile.ground import SECRET, plain_git

NAMES = 150
NOTES = 400
SETTINGS = 200

PIECES = (
    *("a", "b", " ", ".", "..", "-", "--help", "~", "@12", " v3", "#tag", "::args.path", "[[a]]"),
    *("|", "$(id)", "`id`", ";", "&", "*", "?", "\\", "C:", "git:HEAD:a", "https://a", "turns 1-9"),
    *("\n", "\r", "\t", "\x1b[2J", "\x1b]0;t\x07", "\x7f", "\x9b", "\u202e", "\u200b", "\ufeff"),
    *("é", "e\u0301", "\U0001f600", "\udcff", "\udc80", ":(glob)", "[foredeck]", "[user-stated]"),
    *("CON", "x" * 200, "y" * 60, ".git", ".pi", "notes", "%s", "{0}", "null", "'", '"', "<b>"),
)


def name_of(luck: random.Random) -> str:
    """A name that a file can have, most of the time."""
    pieces = luck.choices(PIECES, k=luck.randint(1, 5))
    return os.fsdecode(os.fsencode("".join(pieces).replace("/", ""))[:250])


def made(folder: Path, luck: random.Random, text: str) -> bool:
    """Put something of such a name into a folder."""
    path = folder / name_of(luck) / name_of(luck) if luck.random() < 0.3 else folder / name_of(luck)
    if luck.random() < 0.5:
        path = path.with_name(f"{path.name[:60]}.md")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        match luck.randrange(6):
            case 0:
                path.symlink_to(luck.choice(["..", "../../user/keys", "/", path.name, "a/../b"]))
            case 1:
                os.mkfifo(path)
            case _:
                path.write_text(text)
    except (OSError, ValueError):
        return False
    return True


@pytest.mark.parametrize("seed", [1, 2])
def test_no_name_stops_or_misleads(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    luck, repo, home = random.Random(seed), tmp_path / "repo", tmp_path / "home"
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "keys").write_text(SECRET)
    (repo / "notes").mkdir(parents=True)
    plain_git(repo, "init", "-q", "-b", "main")
    count = sum(made(luck.choice([repo, repo / "notes"]), luck, f"# {n}\n") for n in range(NAMES))
    assert count > NAMES / 2
    plain_git(repo, "add", "-A")
    names = [str(path.relative_to(repo)) for path in sorted(repo.rglob("*"))][:NAMES]
    with closing(Engine(Config(home=home))) as engine:
        engine.open_session(SimulatedHost("s").opening(str(repo)))
        listed = {"id": "c", "tool": "find", "input": {}, "session": "s"}
        content = [{"type": "text", "text": "\n".join(names)}]
        engine.tool_observed(ToolObservedParams.model_validate({**listed, "content": content}))
        for number, name in enumerate(names):
            for tool in ("activate", "write"):
                call = {"session": "s", "id": f"{tool}{number}", "tool": tool}
                shown = {"id": name, "path": name, "content": "x"}
                with suppress(ForedeckError):
                    engine.prepare_tool(ToolPrepareParams.model_validate({**call, "input": shown}))
    monkeypatch.chdir(repo)
    monkeypatch.setenv("FOREDECK_HOME", str(home))
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    lines = [
        ["index", "."],
        ["notes"],
        ["notes", "--json"],
        ["tags"],
        ["search", "help"],
        ["sessions"],
    ]
    lines += [["blame", "--", name] for name in luck.sample(names, 10)]
    lines += [["cat", "--", name] for name in luck.sample(names, 10)]
    for line in lines:
        assert main(line) in (0, 1, 2, 3, 4), line
    said = "".join(capfd.readouterr())
    assert ("Traceback" in said, SECRET in said) == (False, False)
    with closing(open_store(Config(home=home))) as store:
        stored = [store.get(head.id, FileDocument) for head in store.query("file")]
    paths = [path_of(file.model_dump()) or "" for file in stored if file is not None]
    assert len(paths) > count / 4
    assert [path for path in paths if not path.startswith(f"{repo}/")] == []


YAML = (
    *("a: ", "b: ", "- ", "? ", ": ", "[", "]", "{", "}", "&a ", "*a ", "!!python/object:os.a "),
    *("|\n ", ">\n ", "'", '"', "#", "\n", "\n  ", "\t", "---\n", "...\n", "%YAML 9\n", "null"),
    *("1e999", "0x1F", "2026-13-45", "1:2:3", "<<: ", "\udcff", "\0", "\u2028", "\U0001f600", "~"),
    *("[[a#b|c]]", "#tag/sub", "^block", "![](", "](", "<a ", "```\n", "|a|\n|-|\n", "    ", "\\"),
)


def test_no_note_stops_the_reader() -> None:
    luck = random.Random(3)
    for _ in range(NOTES):
        front = "".join(luck.choices(YAML, k=luck.randint(0, 40)))
        body = "".join(luck.choices(YAML, k=luck.randint(0, 80))) * luck.choice([1, 1, 20])
        note = parse_note(f"---\n{front}\n---\n{body}")
        json.dumps(note.properties, allow_nan=False)
        places = [(each.start, each.end) for each in note.references if each.start is not None]
        assert all(0 <= start <= end for start, end in places)


def value_of(luck: random.Random) -> str:
    """A value as TOML, of any kind."""
    plain = ("true", "-1", "0", "9223372036854775808", "1e999", "nan", "1979-05-27", '""', "'../x'")
    nested = ("[]", "[[[]]]", "{}", "{a = {b = 1}}", "['/', 1]", '["\\u0000"]', "[{a = 1}]")
    return luck.choice((*plain, *nested, "'" + "x" * 5000 + "'", "'\u202e'", "'xtdb'", "'off'"))


def default_of(key: str) -> str:
    """The value that a key has anyway, as TOML."""
    value = Config()
    for part in filter(None, key.strip('"').split(".")):
        value = getattr(value, part, None)
    return json.dumps(value) if isinstance(value, bool | int | float | str) else '""'


def file_of(luck: random.Random) -> bytes:
    """A project's configuration file."""
    known = sorted(all_keys())
    lines = []
    for _ in range(luck.randint(0, 12)):
        key = luck.choice(known) if luck.random() < 0.9 else f'"{luck.choice(("", "a.b", "é"))}"'
        value = default_of(key) if luck.random() < 0.4 else value_of(luck)
        lines.append(f"{key} = {value}")
    if luck.random() < 0.2:
        lines.append(luck.choice(["[", "[a", "a = ", "a.b.c.d = 1", "[[notes]]", "a = 1\na = 2"]))
    text = "\n".join(lines).encode()
    return text if luck.random() < 0.9 else text + luck.randbytes(40)


def test_no_file_of_a_project_stops_foredeck_or_sets_what_it_may_not(tmp_path: Path) -> None:
    luck, file = random.Random(4), tmp_path / ".pi" / "foredeck.toml"
    file.parent.mkdir()
    standard, kept = Config(), [key for key, known in all_keys().items() if known.user_only]
    counted = 0
    for _ in range(SETTINGS):
        file.write_bytes(file_of(luck))
        found = load_config(project=tmp_path, trusted=True, environ={}, user_file=Path(os.devnull))
        counted += any(origin.kind == "project" for origin in found.origins.values())
        for key in kept:
            get = attrgetter(key)
            assert get(found.config) == get(standard)
        assert len(found.warning) < 2000
    assert counted > SETTINGS / 4


@pytest.mark.parametrize("target", ["foredeck.toml", "..", "/", "/dev/full", "not-there"])
def test_no_link_in_its_place_stops_foredeck(tmp_path: Path, target: str) -> None:
    (tmp_path / ".pi").mkdir()
    (tmp_path / ".pi" / "foredeck.toml").symlink_to(target)
    found = load_config(project=tmp_path, trusted=True, environ={}, user_file=Path(os.devnull))
    assert found.config == Config()
