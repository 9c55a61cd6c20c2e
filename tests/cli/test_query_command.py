"""`foredeck xtdb query`, against a real node."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from commands import Foredeck
from foredeck.cli.main import main
from foredeck.model.documents import ToolcallDocument
from foredeck.model.records import NicknameDocument, TurnDocument, by_foredeck, nickname_id
from foredeck.model.sources import FilesystemSource
from foredeck_xtdb.database.adapter import open_xtdb
from foredeck_xtdb.node import NodeFolder, private_node
from foredeck_xtdb.runtime import Runtime
from store.documents import batch, file, note, session_wrapper


@pytest.fixture(scope="module")
def node(runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeFolder]:
    """A node with two versions of a note, and files."""
    with private_node(tmp_path_factory.mktemp("xtdb"), runtime) as folder:
        with closing(open_xtdb(folder.running().url, token=folder.token())) as store:
            store.commit(batch(note("a", "one", session="old")))
            store.commit(batch(note("a", "two", session="new")))
            store.commit(batch(*(file(f"/{n}") for n in range(5))))
        yield folder


@pytest.fixture
def ask(node: NodeFolder, capsys: pytest.CaptureFixture[str]) -> Any:
    """Exit code, and JSON of an answer or text of an error."""
    running = node.running()

    def run(*words: str) -> tuple[int, Any]:
        place = ["--url", running.url, "--token-file", str(node.token_file)]
        code = main(["xtdb", "query", *words, *place, "--json"])
        told = capsys.readouterr()
        return code, json.loads(told.out) if code == 0 else told.err

    return run


SESSIONS = "{:find [?s] :where [[?e :foredeck/session ?s]]}"
PATHS = "[:find ?p :where [?e :foredeck/source_path ?p] :order-by [?p :asc]]"


def test_rows(ask: Any) -> None:
    assert ask(SESSIONS) == (0, {"columns": ["?s"], "rows": [["new"]], "more": False})
    query = (
        "{:find [?t (count ?e)] :keys [type many] :in [[?t ...]] :where [[?e :foredeck/type ?t]]}"
    )
    code, told = ask(query, '["note" "file"]')
    assert (code, told["columns"]) == (0, ["type", "many"])
    assert sorted(told["rows"]) == [["file", 5], ["note", 1]]
    by_type = "[:find ?e :in ?t :where [?e :foredeck/type ?t]]"
    assert ask(by_type, "note")[1]["rows"] == [["foredeck/doc/a"]]
    assert ask(by_type, "nothing")[1]["rows"] == []


def test_fields_are_asked_for_by_name(node: NodeFolder, ask: Any) -> None:
    running = node.running()
    calls = [
        ToolcallDocument(
            id=f"toolu_{n}",
            tool="bash",
            args={"command": f"make {n}", "parts": ["a", {"b": "x" * 900}]},
            position=n,
            provenance=by_foredeck(),
        ).seal()
        for n in range(2)
    ]
    with closing(open_xtdb(running.url, token=node.token(), namespace="fields")) as store:
        store.commit(batch(*calls))

    def answer(query: str) -> Any:
        code, told = ask(query, "--set", "xtdb.namespace=fields")
        assert code == 0
        return told["columns"], sorted(told["rows"], key=str)

    where = ':where [[?e :fields/type "toolcall"]]}'
    assert answer('{:find [(field ?e "args.command") (field ?e "position")] ' + where) == (
        ['(field ?e "args.command")', '(field ?e "position")'],
        [["make 0", 0], ["make 1", 1]],
    )
    named = '{:find [?e (field ?e "args.parts.1.b") (field ?e "none.at.all")] :keys [e b none] '
    assert answer(named + where) == (
        ["e", "b", "none"],
        [[f"fields/doc/toolu_{n}", "x" * 900, None] for n in range(2)],
    )
    code, told = ask('{:find [(field ?e tool)] :where [[?e :fields/type "toolcall"]]}')
    assert (code, 'is not like (field ?e "args.command")' in told) == (2, True)


ASKED = {
    "status": ("fail", ["c2"]),
    "tool": ("bash", ["c1", "c2"]),
    "state": ("deleted", ["/v/gone.py"]),
    "file_type": ("md", ["/v/plan.md"]),
    "harness": ("claude-code", ["session:s"]),
    "nickname": ("plan", ["nickname:plan"]),
}


def test_what_people_ask_for_is_an_attribute(node: NodeFolder, ask: Any) -> None:
    running = node.running()
    calls = [
        ToolcallDocument(id=id, tool=tool, status=status, provenance=by_foredeck()).seal()
        for id, tool, status in (("c1", "bash", "ok"), ("c2", "bash", "fail"), ("c3", "ls", "ok"))
    ]
    files = [file("/v/plan.md", file_type="md"), file("/v/gone.py", None, state="deleted")]
    wrapper = session_wrapper("s", harness="claude-code")
    names = [
        NicknameDocument(id=nickname_id(name), object=owner)
        for name, owner in (("plan", files[0].id), ("free", None))
    ]
    with closing(open_xtdb(running.url, token=node.token(), namespace="asked")) as store:
        store.commit(batch(*calls, *files, wrapper, *(name.seal() for name in names)))
    called = {f.id: f.source.path for f in files if isinstance(f.source, FilesystemSource)}
    found = {}
    for name, (value, _) in ASKED.items():
        query = f"{{:find [?e] :in [?value] :where [[?e :asked/{name} ?value]]}}"
        code, told = ask(query, value, "--set", "xtdb.namespace=asked")
        assert code == 0
        ids = sorted(row[0].removeprefix("asked/doc/") for row in told["rows"])
        found[name] = (value, [called.get(id, id) for id in ids])
    assert found == ASKED
    named = """{:find [(field ?o "source.path")] :where [[?n :asked/nickname "plan"]
     [?n :asked/object ?id] [(str "asked/doc/" ?id) ?o] [?o :asked/type "file"]]}"""
    assert ask(named, "--set", "xtdb.namespace=asked")[1]["rows"] == [["/v/plan.md"]]


LEADS = """[[(leads [?b] ?a) [?b :links/names ?key] [?a :links/references ?key]]
 [(leads [?c] ?a) [?c :links/names ?key] [?b :links/references ?key]
                  [(!= ?b ?c)] (leads ?b ?a)]]"""
LEADING = f"""{{:find [(pull ?a [:links/source_path])] :in [?path]
 :where [[?b :links/source_path ?path] (leads ?b ?a)] :rules {LEADS}}}"""
TOUCHED = """{:find [?turn ?path] :where [[?turn :links/toolcall_ids ?call]
 [?call :links/file_refs ?file] [?file :links/source_path ?path]]}"""
READERS = """{:find [?call] :in [?path] :where [[?file :links/source_path ?path]
 [?file :links/names ?key] [?call :links/references ?key] [?call :links/type "toolcall"]]}"""


@pytest.fixture(scope="module")
def linked(node: NodeFolder) -> None:
    """Notes in a circle, in a namespace of their own, and a call that touched one."""
    with closing(open_xtdb(node.running().url, token=node.token(), namespace="links")) as store:
        store.commit(
            batch(
                file("/v/a.md", "# First\n[[Second]]", file_type="md"),
                file("/v/b.md", "# Second\n[c](c.md)" + "\nlong" * 500, file_type="md"),
                file("/v/c.md", "[[a]] and [[c]]", file_type="md"),
                file("/v/d.md", "[[nowhere]] [[First]]", file_type="md"),
            )
        )
        (touched,) = store.find("file", {"source.path": "/v/b.md"})
        call = ToolcallDocument(id="c1", tool="read", file_refs=[touched], provenance=by_foredeck())
        turn = TurnDocument(id="turn:s:1", session="s", toolcall_ids=["c1"])
        store.commit(batch(call.seal(), turn.seal()))


@pytest.mark.usefixtures("linked")
def test_links_are_followed_through_cycles(ask: Any) -> None:
    def rows(query: str, *values: str) -> Any:
        code, told = ask(query, *values, "--set", "xtdb.namespace=links")
        assert code == 0
        return sorted(told["rows"], key=str)

    paths = [f"/v/{name}.md" for name in "abcd"]
    for path in paths[:3]:
        told = [row for (row,) in rows(LEADING, path)]
        found = {row["links/source_path"] for row in told if row}  # a call has no path
        assert found == set(paths)

    assert rows(TOUCHED) == [["links/doc/turn:s:1", "/v/b.md"]]
    assert rows(READERS, "/v/b.md") == [["links/doc/c1"]]


def test_a_reached_limit_is_reported(ask: Any, foredeck: Foredeck, node: NodeFolder) -> None:
    code, told = ask(PATHS, "--limit", "2")
    assert (code, told["rows"], told["more"]) == (0, [["/0"], ["/1"]], True)
    assert ask(PATHS, "--limit", "5")[1]["more"] is False
    words = ["--url", node.running().url, "--token-file", str(node.token_file), "--limit", "2"]
    assert foredeck("xtdb", "query", PATHS, *words) == "?p\n/0\n/1\n\n2 rows\n"
    assert "more than 2" in foredeck.err


def test_as_of_a_transaction(ask: Any, node: NodeFolder) -> None:
    with closing(open_xtdb(node.running().url, token=node.token())) as store:
        first, second = (head.token for head in store.history("a"))
    assert ask(SESSIONS, "--as-of", first)[1]["rows"] == [["old"]]
    assert ask(SESSIONS, "--as-of", second)[1]["rows"] == [["new"]]
    code, told = ask(SESSIONS, "--as-of", "nobody-1")
    assert (code, "nobody-1" in told) == (3, True)


def test_at_a_time(ask: Any, node: NodeFolder) -> None:
    with closing(open_xtdb(node.running().url, token=node.token())) as store:
        times = [head.time_ms for head in store.history("a")]

    def rows(time_ms: int) -> Any:
        moment = datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
        return ask(SESSIONS, "--at", moment)[1]["rows"]

    assert rows(times[0] - 1) == []
    assert rows(times[0]) == [["old"]]
    assert rows(times[1] - 1) == [["old"]]
    assert rows(times[1]) == [["new"]]
    assert ask(SESSIONS, "--at", "now")[1]["rows"] == [["new"]]
    code, told = ask(SESSIONS, "--at", "some day")
    assert (code, "'some day' is no point in time" in told) == (2, True)


def test_what_is_refused_is_explained(ask: Any) -> None:
    code, told = ask('{:find [?x] :where [[(slurp "f") ?x]]}')
    assert (code, "queries may not call slurp" in told) == (2, True)
    code, told = ask("{:find [?x] :where [[?e :a]]}")
    assert (code, "XTDB refused the query" in told) == (1, True)
    assert "?x" in told
    code, told = ask("{:find [?x")
    assert (code, "not EDN" in told) == (2, True)
    code, told = ask("{:find [?x] :where [[?e :foredeck/session ?s] [(subs ?s 9) ?x]]}")
    assert (code, "XTDB refused the query" in told) == (1, True)


def test_a_query_that_takes_too_long_is_ended(ask: Any) -> None:
    slow = (
        "{:find [(count ?a)] :in [[?a ...] [?b ...] [?c ...] [?d ...]]"
        " :where [[(+ ?a ?b ?c ?d) ?s] [(odd? ?s)]]}"
    )
    many = f"[{' '.join(map(str, range(400)))}]"
    code, told = ask(slow, many, many, many, many, "--timeout", "1")
    assert (code, "ended after 1 s" in told) == (1, True)
    assert ask(SESSIONS)[0] == 0


def test_from_stdin(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(SESSIONS))
    assert ask("-")[1]["rows"] == [["new"]]


def test_the_node_of_the_state_folder(
    runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, foredeck: Foredeck
) -> None:
    monkeypatch.setenv("FOREDECK_HOME", str(tmp_path))
    assert "the store here is SQLite" in foredeck("xtdb", "query", SESSIONS, code=3)
    with private_node(tmp_path / "xtdb", runtime):
        assert foredeck("xtdb", "query", SESSIONS) == "No rows.\n"
