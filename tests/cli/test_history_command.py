"""`foredeck history`, `cat` and `diff`, on every name that an object and a version can have."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from base64 import b64encode
from contextlib import closing, redirect_stdout
from datetime import datetime
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
from stored_session import FIRST, SECOND, SESSION, START_MS, copy_home

from commands import Foredeck
from foredeck.cli.main import main
from foredeck.model.calls import CallDocument
from foredeck.model.documents import FileDocument, Provenance, ToolcallDocument
from foredeck.model.identity import hash_text
from foredeck.model.records import MemberDocument, call_id, member_id
from foredeck.sources.disk import DiskSource
from foredeck.sources.filesystem import FilesystemMap
from foredeck.store.protocol import Batch, Origin, Token
from foredeck.store.store import open_sqlite
from store.documents import file


def cat_bytes(home: Path, *arguments: str) -> bytes:
    with redirect_stdout(TextIOWrapper(BytesIO(), "utf-8")) as printed:
        assert main(["cat", *arguments, "--home", str(home)]) == 0
        return bytes(printed.buffer.getvalue())


def add_file(home: Path, filesystem: str, path: str, content: str) -> str:
    """A file of another file system; returns its id."""
    document = file(path, content, filesystem)
    with closing(open_sqlite(home / "foredeck.db")) as store:
        store.commit(Batch(puts=[document]))
    return document.id


def test_history_lists_numbers_session_versions_and_tokens(home: Path, foredeck: Foredeck) -> None:
    value = foredeck.json(home, "history", "/repo/src/a.txt")
    assert (value["type"], value["session"], value["handle"]) == ("file", SESSION, "@3")
    assert value["source"]["path"] == "/repo/src/a.txt"
    versions = value["versions"]
    assert [version["version"] for version in versions] == [1, 2]
    assert [version["session_version"] for version in versions] == ["v1", "v2"]
    assert len({version["token"] for version in versions}) == 2
    text = foredeck(home, "history", "/repo/src/a.txt")
    assert text.startswith("/repo/src/a.txt\nfile ")
    assert f"@3 in session {SESSION}" in text
    assert versions[0]["token"] in text


@pytest.mark.parametrize(
    "name", ["/repo/src/a.txt", "src/a.txt", "./src/a.txt", "a.txt", f"{SESSION}:@3", "0199cc:@3"]
)
def test_an_object_goes_by_many_names(home: Path, name: str, foredeck: Foredeck) -> None:
    assert foredeck.json(home, "history", name)["source"]["path"] == "/repo/src/a.txt"


def test_a_path_is_relative_to_the_current_folder(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, foredeck: Foredeck
) -> None:
    home = copy_home(home, tmp_path / "home")
    here = tmp_path / "tides"
    here.mkdir()
    (tmp_path / "link").symlink_to(here)
    id = add_file(home, "this machine", str(here / "notes.md"), "mine")
    monkeypatch.chdir(here)
    for name in ("notes.md", "./notes.md", "../tides/notes.md", "../link/notes.md"):
        assert foredeck.json(home, "history", name)["object"] == id


def test_one_path_on_two_file_systems_is_asked_back(
    home: Path, tmp_path: Path, foredeck: Foredeck
) -> None:
    home = copy_home(home, tmp_path / "home")
    other = add_file(home, "another machine", "/repo/src/a.txt", "theirs")
    told = foredeck.refused(home, "cat", "/repo/src/a.txt")
    assert "fits several objects" in told
    assert other[:12] in told
    assert cat_bytes(home, "/repo/src/a.txt", "--session", SESSION) == SECOND.encode()
    assert cat_bytes(home, other) == b"theirs"


def test_cat_prints_the_bytes_and_nothing_else(home: Path, tmp_path: Path) -> None:
    assert cat_bytes(home, "/repo/src/a.txt") == SECOND.encode()
    assert cat_bytes(home, "toolu_c") == b"1 failed \x1b[31mred\x1b[0m"
    home = copy_home(home, tmp_path / "home")
    odd = "no newline at the end \ud83d\r\n\0 é"
    id = add_file(home, "x", "/odd", odd)
    assert cat_bytes(home, id) == odd.encode(errors="surrogatepass")
    command = [sys.executable, "-m", "foredeck.cli.main", "cat", id, "--home", str(home)]
    assert subprocess.run(command, capture_output=True, check=True).stdout == cat_bytes(home, id)
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command.append("--json")
    done = subprocess.run(command, env=ascii_only, capture_output=True, check=True)
    assert json.loads(done.stdout)["content"] == odd


def test_cat_at_a_version_by_number_session_version_or_token(
    home: Path, foredeck: Foredeck
) -> None:
    versions = foredeck.json(home, "history", "a.txt")["versions"]
    for name in ("1", "v1", versions[0]["token"]):
        assert foredeck(home, "cat", "a.txt", "--at", name, "--json")
        assert cat_bytes(home, "a.txt", "--at", name) == FIRST.encode()
    for name in ("2", "v2", versions[1]["token"]):
        assert cat_bytes(home, "a.txt", "--at", name) == SECOND.encode()
    newest = foredeck.json(home, "history", f"chat:{SESSION}")["versions"][-1]["token"]
    assert cat_bytes(home, "a.txt", "--at", newest) == SECOND.encode()


def make_versions_days_apart(home: Path) -> list[str]:
    """A file with a version on each of three days; returns their texts."""
    texts = ["monday\n", "tuesday\n", "wednesday\n"]
    with closing(open_sqlite(home / "foredeck.db")) as store:
        for number, content in enumerate(texts):
            noon = datetime(2025, 3, 3 + number, 12)
            origin = Origin(Token(f"days-{number}"), int(noon.timestamp() * 1000))
            store.commit(Batch(puts=[file("/days.txt", content)]), origin=origin)
    return texts


def test_a_version_goes_by_a_time(home: Path, tmp_path: Path, foredeck: Foredeck) -> None:
    home = copy_home(home, tmp_path / "home")
    texts = make_versions_days_apart(home)
    for at, text in (
        ("2025-03-03", texts[0]),
        ("2025-03-04 11:59", texts[0]),
        ("2025-03-04T12:00", texts[1]),
        ("2025-03-04", texts[1]),
        ("yesterday", texts[2]),
        ("1 hour ago", texts[2]),
    ):
        assert cat_bytes(home, "days.txt", "--at", at) == text.encode()
    lines = foredeck(home, "history", "--diff", "days.txt", "--at", "2025-03-03").splitlines()
    assert lines[3:] == ["-monday", "+wednesday", " "]
    lines = foredeck(home, "history", "--diff", "days.txt", "2025-03-03", "2025-03-04").splitlines()
    assert lines[3:] == ["-monday", "+tuesday", " "]
    listed = foredeck.json(home, "history", "days.txt", "--at", "2025-03-04")["versions"]
    assert [version["version"] for version in listed] == [1, 2]


def test_a_version_goes_by_a_hash(home: Path, foredeck: Foredeck) -> None:
    first, second = foredeck.json(home, "history", "a.txt")["versions"]
    assert first["text_hash"] == hash_text(FIRST)
    for name in ("text_hash", "content_hash"):
        for hash in (first[name], first[name][:8]):
            assert cat_bytes(home, "a.txt", "--at", hash) == FIRST.encode()
            assert foredeck.json(home, "history", "a.txt", "--at", hash)["versions"] == [first]
    lines = foredeck(home, "history", "--diff", "a.txt", first["text_hash"], second["content_hash"])
    assert "\n-two\n+2\n" in lines


def test_a_call_goes_by_a_time_or_by_a_hash_in_its_prompt(home: Path, foredeck: Foredeck) -> None:
    def shown(at: str) -> int:
        return int(foredeck.json(home, "show", SESSION, "--at", at)["call"])

    times = [f"{datetime.fromtimestamp(START_MS / 1000 + n)}" for n in range(1, 10)]
    by_time = [shown(time) for time in times]
    assert (by_time[0], by_time[-1]) == (1, shown("now"))
    assert sorted(set(by_time)) == list(range(1, shown("now") + 1))
    assert shown(hash_text(FIRST)) == shown(hash_text(FIRST)[:8]) == 2
    assert main(["show", SESSION, "--at", "now", "--call", "2", "--home", str(home)]) == 2


def rename_twice(home: Path, folder: Path) -> list[str]:
    """A file that was a.md, b.md and c.md; its ids. After the first rename another a.md came."""
    with closing(open_sqlite(home / "foredeck.db")) as store:
        disk = DiskSource(store, FilesystemMap("f", cwd=str(folder)))

        def look(targets: list[str]) -> None:
            seen = disk.reconcile(targets)
            store.commit(Batch(puts=[s.document for s in seen if s.document is not None]))

        (folder / "a.md").write_text("first\n")
        first = disk.sight("a.md", "read").document
        store.commit(Batch(puts=[first]))
        ids = [first.id]
        for old, new in (("a.md", "b.md"), ("b.md", "c.md")):
            (folder / old).rename(folder / new)
            look([ids[-1]])
            (folder / new).write_text(f"{new}\n")
            ids.append(disk.identify(new)[0])
            look([ids[-1]])
            (folder / "a.md").write_text(f"another beside {new}\n")
            look([ids[0]])
    return ids


def test_history_follows_renames_both_ways(home: Path, tmp_path: Path, foredeck: Foredeck) -> None:
    home, folder = copy_home(home, tmp_path / "home"), (tmp_path / "work")
    folder.mkdir()
    a, b, c = rename_twice(home, folder.resolve())
    path = f"{folder.resolve()}/"

    def entries(name: str) -> list[tuple[str, int, str]]:
        versions = foredeck.json(home, "history", name)["versions"]
        return [(v["path"].removeprefix(path), v["version"], v["note"]) for v in versions]

    moved = [
        ("a.md", 1, "6 characters"),
        ("a.md", 2, f"moved to {path}b.md"),
        ("b.md", 1, "6 characters"),
        ("b.md", 2, "5 characters"),
        ("b.md", 3, f"moved to {path}c.md"),
        ("c.md", 1, "5 characters"),
        ("c.md", 2, "5 characters"),
    ]
    assert entries(c) == entries(b) == moved
    assert [entry for entry in entries(a) if entry[1:] not in [(3, "20 characters")]][:2] == moved[
        :2
    ]
    assert {entry[0] for entry in entries(a)} == {"a.md", "b.md", "c.md"}
    text = foredeck(home, "history", c)
    # Stored by another machine.
    orphaned = "orphaned: it cannot be looked at where it was, and its last version stays"
    assert text.startswith(f"{path}c.md\nfile {c}\n{orphaned}\n\n{path}a.md\nversion ")
    assert [v["path"] for v in foredeck.json(home, "history", c, "--at", "1")["versions"]][
        -1
    ] == f"{path}c.md"
    assert f"it moved to {path}c.md" in foredeck.refused(home, "cat", b, code=1)


def test_content_that_is_not_there_is_exit_code_1(
    home: Path, tmp_path: Path, foredeck: Foredeck
) -> None:
    home = copy_home(home, tmp_path / "home")
    with closing(open_sqlite(home / "foredeck.db")) as store:
        (head,) = store.query("file", {"source.path": "/repo/src/a.txt"})
        document = store.get(head.id, FileDocument)
        document.content, document.state = None, "deleted"
        store.commit(Batch(puts=[document.seal()]))
    assert "it was deleted" in foredeck.refused(home, "cat", "a.txt", code=1)
    assert "it was deleted" in foredeck.refused(
        home, "history", "--diff", "a.txt", "1", "3", code=1
    )
    assert cat_bytes(home, "a.txt", "--at", "2") == SECOND.encode()
    assert foredeck.json(home, "history", "a.txt")["versions"][2]["note"] == "deleted"


def test_images_of_a_result_come_as_data(home: Path, tmp_path: Path, foredeck: Foredeck) -> None:
    home = copy_home(home, tmp_path / "home")
    picture = b"\x89PNG\r\n\x1a\n"
    address = hashlib.sha256(picture).hexdigest()
    for name, content in (("shot", None), ("both", "Seen.")):
        document = ToolcallDocument(
            id=name,
            provenance=Provenance(origin="test", generator="tool"),
            tool="screenshot",
            content=content,
            images=[address],
        ).seal()
        with closing(open_sqlite(home / "foredeck.db")) as store:
            store.commit(Batch(puts=[document], blobs={address: picture}))
    why = "it is an image, which --json prints in base64"
    assert why in foredeck.refused(home, "cat", "shot", code=1)
    for name, content in (("shot", ""), ("both", "Seen.")):
        said = foredeck.json(home, "cat", name)
        assert (said["content"], said["images"]) == (content, [b64encode(picture).decode()])
    assert foredeck(home, "cat", "both") == "Seen."


def test_a_chat_is_written_as_markdown_from_its_turns(home: Path, foredeck: Foredeck) -> None:
    assert cat_bytes(home, f"chat:{SESSION}").decode(errors="surrogatepass").splitlines() == [
        "--- user",
        "Read it, \ud83d please.",
        '--- toolcall @4 tool=read args="src/a.txt" status=ok',
        '--- toolcall @5 tool=write args="src/a.txt" status=ok',
        '--- toolcall @6 tool=bash args="make test" status=fail',
        '--- toolcall @7 tool=bash args="rm src/a.txt" status=ok',
    ]
    count = len(foredeck.json(home, "history", f"chat:{SESSION}")["versions"])
    assert cat_bytes(home, f"chat:{SESSION}", "--at", "2").count(b"toolcall") == 1
    assert count > 3


def test_a_chat_as_data_has_its_turns(home: Path, foredeck: Foredeck) -> None:
    chat = foredeck.json(home, "cat", f"chat:{SESSION}")
    assert chat["session_ref"] == f"session:{SESSION}"
    assert chat["turn_count"] == len(chat["turns"]) == 4
    assert chat["toolcall_refs"] == ["toolu_a", "toolu_b", "toolu_c", "toolu_d"]
    first, second, *_ = chat["turns"]
    assert (first["user"]["content"], second["user"]) == ("Read it, \ud83d please.", None)
    assert first["assistant"]["content"][0]["name"] == "read"
    assert [turn["user_turn"] for turn in chat["turns"]] == [1] * 4
    assert [turn["toolcall_ids"] for turn in chat["turns"][:2]] == [["toolu_a"], ["toolu_b"]]
    older = json.loads(foredeck(home, "cat", f"chat:{SESSION}", "--json", "--at", "2"))
    assert older["turns"] == chat["turns"][:1]


def test_diff_shows_what_changed(home: Path, foredeck: Foredeck) -> None:
    expected = ["@@ -1,5 +1,5 @@", " one", "-two", "+2", " three", " filler", " filler"]
    for versions in (["1", "2"], ["v1", "v2"], []):
        lines = foredeck(home, "history", "--diff", "a.txt", *versions).splitlines()
        assert lines[0].startswith("--- /repo/src/a.txt (version 1)\t")
        assert lines[1].startswith("+++ /repo/src/a.txt (version 2)\t")
        assert lines[2:] == expected
    value = foredeck.json(home, "history", "--diff", "a.txt", "2", "1")
    assert (value["old"]["version"], value["new"]["version"]) == (2, 1)
    assert "-2\n+two" in value["diff"]
    same = foredeck.refused(home, "history", "--diff", "a.txt", "1", "1", code=0)
    assert "is compared with itself" in same


def test_a_version_with_other_bytes_than_its_pin_says_is_damaged(
    home: Path, tmp_path: Path, foredeck: Foredeck
) -> None:
    home = copy_home(home, tmp_path / "home")
    with closing(open_sqlite(home / "foredeck.db")) as store:
        for member in (store.get(member_id(SESSION, n), MemberDocument) for n in (1, 3)):
            seen = member.version_ref.model_copy(update={"text_hash": "0" * 64, "version": 9})
            member.version_ref = seen.model_copy(
                update={"token": store.history(seen.object)[-1].token}
            )
            store.commit(Batch(puts=[member.seal()]))
        call = store.get(call_id(SESSION, 2), CallDocument)
        call.system = store.get(member_id(SESSION, 1), MemberDocument).version_ref
        store.commit(Batch(puts=[call.seal()]))
    assert "v9 is damaged" in foredeck.refused(home, "cat", "a.txt", "--at", "v9", code=3)
    assert "v9 is damaged" in foredeck.refused(
        home, "history", "--diff", "a.txt", "v1", "v9", code=3
    )
    assert "v9 is damaged" in foredeck.refused(home, "show", SESSION, "--call", "2", code=3)
    assert cat_bytes(home, "a.txt", "--at", "v1") == FIRST.encode()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["cat", "b.txt"], "Nearest: /repo/src/a.txt"),
        (["cat", "nothing like it"], "no object is called"),
        (["cat", "tool"], "'tool' fits several objects: toolu_a, toolu_b"),
        (["cat", "@3"], "write SESSION:@3, or use --session"),
        (["cat", f"{SESSION}:@99"], "has no @99; its handles: @1 to @7"),
        (["cat", "nobody:@1"], "no session 'nobody' is stored"),
        (["cat", "@1", "--session", "nobody"], "no session 'nobody' is stored"),
        (["blame", "a.txt:3-1"], "there are no lines 3 to 1: they count from 1, upwards."),
        (["cat", "a.txt", "--at", "3"], "has no version 3; it has 1 to 2"),
        (["cat", "a.txt", "--at", "0"], "has no version 0; it has 1 to 2"),
        (["cat", "a.txt", "--at", "v9"], "has no v9: session 0199cccc"),
        (["cat", "a.txt", "--at", "never"], "'never' is no version: give a number from 1 to 2"),
        (["cat", "a.txt", "--at", "1999-12-31"], "had no version yet at 1999-12-31 23:59:59. It"),
        (["cat", "a.txt", "--at", "deadbeef"], "has a hash that begins deadbeef: it has versions"),
        (["history", "--diff", "a.txt", "--at", "2 fortnights ago"], "or a time (2026-03-01, "),
        (["history", "a.txt", "--at", "1999-12-31"], "It has versions 1 ("),
        (["show", SESSION, "--at", "1999-12-31"], "had made no call yet at 1999-12-31 23:59:59"),
        (["show", SESSION, "--at", "deadbeef"], "had a text or message whose hash begins deadbe"),
        (["history", "--diff", "a.txt", "1", "7"], "has no version 7; it has 1 to 2"),
    ],
)
def test_what_is_not_there_is_told_with_the_nearest(
    home: Path, arguments: list[str], told: str, foredeck: Foredeck
) -> None:
    assert told in foredeck.refused(home, *arguments)


def test_a_file_that_is_not_stored_is_told(home: Path, tmp_path: Path, foredeck: Foredeck) -> None:
    file = tmp_path / "new.py"
    file.write_text("new")
    told = f"{file} is not stored: no session has met it. `foredeck index` stores files."
    for command in ("cat", "history", "blame"):
        assert told in foredeck.refused(home, command, str(file))
    assert "no object is called" in foredeck.refused(home, "cat", "n" * 5000)
    assert "by a path, a note's title," in foredeck.refused(home, "graph", "Ebb")


def test_a_version_before_the_object_is_told(home: Path, foredeck: Foredeck) -> None:
    first = foredeck.json(home, "history", f"chat:{SESSION}")["versions"][0]["token"]
    assert "did not exist yet" in foredeck.refused(home, "cat", "toolu_d", "--at", first)


@pytest.mark.parametrize("asked", ["chars 0-5", "chars 9-5", "chars 9000-9010"])
def test_a_place_beyond_the_text_is_no_empty_text(
    home: Path, foredeck: Foredeck, asked: str
) -> None:
    assert f"it has no {asked}, but chars 1-" in foredeck.refused(
        home, "cat", f"a.txt {asked}", code=1
    )
