"""The graph in a derived layer against the plain one, over edits, moves and deletions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from examples import examples
from foredeck.derived.follower import Follower
from foredeck.model.documents import (
    ChatDocument,
    FileDocument,
    Provenance,
    ToolcallDocument,
    identity_hash,
)
from foredeck.model.records import (
    MemberDocument,
    NicknameDocument,
    VersionRef,
    member_id,
    nickname_id,
)
from foredeck.model.sources import FilesystemSource
from foredeck.model.tasks import TaskDependency, TaskDocument, TaskLink
from foredeck.notes.expanding import expand
from foredeck.notes.graph import Graph, Selection
from foredeck.sources.snapshots import link_move
from foredeck.store.protocol import Batch, Token
from foredeck.store.store import Store, open_sqlite
from foredeck_xtdb.node import NodeFolder
from store.documents import file
from store.journaled import Machine, delivered, new_namespace, server_link

from .reference_graph import PlainFile, PlainGraph

PATHS = [
    *("/v/a.md", "/v/b.md", "/v/Old Name.md", "/v/d/a.md", "/v/d/c.md", "/v/d/e/b.md", "/v/x.txt")
]
TARGETS = [
    *("a", "A", "b.md", "c", "d/a", "e/b", "../a", "./c", "Old name", "Title", "Other", "x.txt"),
    *("nick", "@1", "@2", "nowhere", "/v/d/c", "a.md"),
]
LINKS = st.sampled_from(
    [f"[[{t}]]" for t in TARGETS]
    + ["[x](a.md)", "[x](../b.md)", "![[c|l]]", "![i](x.txt)", "[x](d/c.md#h)", "[x](a)"]
)
TITLES = st.sampled_from(["", "# Title\n", "# Other\n", "---\naliases: [nick, Title]\n---\n"])
TEXTS = st.builds(
    lambda title, links: title + "\n".join(links), TITLES, st.lists(LINKS, max_size=4)
)
PATH = st.sampled_from(PATHS)
ACTIONS = st.one_of(
    st.tuples(st.just("write"), PATH, TEXTS),
    st.tuples(st.just("write"), PATH, TEXTS),
    st.tuples(st.just("delete"), PATH),
    st.tuples(st.just("move"), PATH, PATH),
    st.tuples(st.just("name"), PATH),
    st.tuples(st.just("meet"), st.sampled_from(["s1", "s2"]), PATH),
    st.tuples(st.just("follow")),
)
PROVENANCE = Provenance(origin="test", generator="human")


def source(path: str) -> FilesystemSource:
    return FilesystemSource(filesystemId="fs", path=path)


def id_of(path: str) -> str:
    return identity_hash("file", source(path))


def document(path: str, text: str | None) -> FileDocument:
    state = "deleted" if text is None else "text"
    return file(path, text, file_type=path.rpartition(".")[2], state=state)


@dataclass
class Vault:
    """The same files in a store and in a plain graph."""

    store: Store
    follower: Follower
    plain: PlainGraph = field(default_factory=PlainGraph)

    def write(self, path: str, text: str) -> None:
        text = text if path.endswith(".md") else text.replace("[", "(")
        self.store.commit(Batch(puts=[document(path, text)]))
        self.plain.files[path] = PlainFile(path, text if path.endswith(".md") else "")

    def delete(self, path: str) -> None:
        if self._is_there(path):
            self.store.commit(Batch(puts=[document(path, None)]))
            self.plain.files[path] = PlainFile(path, None)

    def move(self, old: str, new: str) -> None:
        if not self._is_there(old) or old == new or old[-3:] != new[-3:]:
            return
        stored = self.store.get(id_of(old), FileDocument)
        gone, arrived = document(old, None), document(new, stored.content)
        link_move(gone, arrived)
        self.store.commit(Batch(puts=[gone, arrived]))
        self.plain.files[new] = PlainFile(new, self.plain.files[old].text)
        self.plain.files[old] = PlainFile(old, None, moved_to=new)

    def name(self, path: str) -> None:
        self.store.commit(
            Batch(puts=[NicknameDocument(id=nickname_id("nick"), object=id_of(path)).seal()])
        )
        self.plain.nicknames["nick"] = path

    def meet(self, session: str, path: str) -> None:
        members = self.plain.sessions.setdefault(session, {})
        if path in members.values():
            return
        ordinal = len(members) + 1
        pin = VersionRef(
            **{"object": id_of(path), "version": 1, "token": Token("self")},
            **{"content_hash": "", "text_hash": None, "metadata_view_hash": ""},
        )
        member = MemberDocument(
            id=member_id(session, ordinal),
            **{"session": session, "ordinal": ordinal, "object": id_of(path)},
            **{"object_type": "file", "version_ref": pin},
        )
        self.store.commit(Batch(puts=[member.seal()]))
        members[ordinal] = path

    def follow(self) -> None:
        self.follower.catch_up()

    def check(self) -> None:
        self.follow()
        graph, plain = Graph(self.follower.db), self.plain
        check_edges(graph, plain)
        for depth in (1, 2, 3):
            for path in plain.files:
                found = graph.neighbours(id_of(path), depth)
                near = {node.path: distance for node, distance in found.nodes}
                assert near == plain.neighbours(path, depth), (path, depth)
        markdown = {id_of(path) for path in plain.files if path.endswith(".md")}
        assert graph.orphans() == {id_of(path) for path in plain.orphans()} & markdown

    def _is_there(self, path: str) -> bool:
        return path in self.plain.files and self.plain.files[path].text is not None


def check_edges(graph: Graph, plain: PlainGraph) -> None:
    paths = {id_of(path): path for path in PATHS}
    out = [edge for path in plain.files for edge in graph.links(id_of(path))]
    into = [edge for path in plain.files for edge in graph.backlinks(id_of(path))]
    for edges in (out, into):
        found = [(paths[e.source], paths[e.target], e.reference.start) for e in edges]
        assert sorted(found) == plain.edges()
    loose = [
        (u.source.path or "", u.reference.start, tuple(sorted(c.path or "" for c in u.candidates)))
        for u in graph.unresolved()
    ]
    assert sorted(loose) == plain.unresolved()


@contextmanager
def vault_in(store: Store, home: Path) -> Iterator[Vault]:
    with closing(store), Follower(store, "notes", home) as follower:
        yield Vault(store, follower)


def act(vault: Vault, actions: list[tuple[str, ...]]) -> None:
    for name, *arguments in actions:
        step: Callable[..., None] = getattr(vault, name)
        step(*arguments)


@settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(ACTIONS, max_size=25))
def test_the_graph_equals_the_plain_one(actions: list[tuple[str, ...]]) -> None:
    with TemporaryDirectory() as folder:
        home = Path(folder)
        with vault_in(open_sqlite(home / "store.db"), home) as vault:
            act(vault, actions)
            vault.check()
            followed = list(map(repr, _all(vault)))
            vault.follower.make_again()
            assert list(map(repr, _all(vault))) == followed


def _all(vault: Vault) -> Iterator[object]:
    graph = Graph(vault.follower.db)
    yield graph.tags()
    yield graph.markdown()
    for path in PATHS:
        yield graph.links(id_of(path))
        yield graph.neighbours(id_of(path), 3)


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(actions=st.lists(ACTIONS, min_size=8, max_size=25))
@example(
    actions=[
        ("write", "/v/a.md", "# Title\n[[c]] [[Other]] [[nowhere]] [[@1]]"),
        ("write", "/v/d/c.md", "# Other\n[[a]] [[d/a]] ![[c]]"),
        ("write", "/v/d/a.md", "[[Title]] [x](../b.md) [[nick]]"),
        ("follow",),
        ("name", "/v/d/c.md"),
        ("meet", "s1", "/v/a.md"),
        ("move", "/v/a.md", "/v/Old Name.md"),
        ("write", "/v/b.md", "[[a]]"),
        ("move", "/v/Old Name.md", "/v/a.md"),
        ("delete", "/v/d/a.md"),
    ]
)
def test_the_graph_of_a_store_on_xtdb_equals_the_plain_one(
    memory_node: NodeFolder, actions: list[tuple[str, ...]]
) -> None:
    """Also that of another machine, which has nothing but what is in XTDB."""
    with TemporaryDirectory() as folder:
        home, link = Path(folder), server_link(memory_node, new_namespace())
        with vault_in(Machine(home / "copy.db", link)(), home) as vault:
            act(vault, actions)
            vault.check()
            delivered(vault.store)
            plain = vault.plain
        with vault_in(Machine(home / "other.db", link)(), home) as other:
            for type_ in ("file", "nickname", "member"):
                other.store.query(type_)  # what is only in XTDB is fetched when it is asked for
            other.plain = plain
            other.check()


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[Vault]:
    with vault_in(open_sqlite(tmp_path / "store.db"), tmp_path) as made:
        yield made


def graph_of(vault: Vault) -> Graph:
    vault.follow()
    return Graph(vault.follower.db)


def test_neighbours_by_relation_and_tag(vault: Vault) -> None:
    vault.write("/v/a.md", '---\nparent: "[[b]]"\n---\n[[c]]')
    vault.write("/v/b.md", "#top/sub")
    vault.write("/v/d/c.md", "")
    graph, start = graph_of(vault), id_of("/v/a.md")

    def paths(selection: Selection) -> list[str | None]:
        return [node.path for node, _ in graph.neighbours(start, 1, selection).nodes[1:]]

    assert paths(Selection()) == ["/v/b.md", "/v/d/c.md"]
    assert paths(Selection(relations=frozenset({"parent"}))) == ["/v/b.md"]
    assert paths(Selection(tag="#TOP")) == ["/v/b.md"]
    assert paths(Selection(types=frozenset({"chat"}))) == []
    assert graph.neighbours(start, 1, limit=2).complete is False


def call(id: str, tool: str = "read", **fields: Any) -> ToolcallDocument:
    return ToolcallDocument(id=id, tool=tool, provenance=PROVENANCE, **fields).seal()


def pinned(vault: Vault, path: str, text: str) -> dict[str, Any]:
    """Write a file, and pin what was written."""
    vault.write(path, text)
    head = vault.store.heads([id_of(path)])[id_of(path)]
    hashes = {n: head.fields[n] for n in ("content_hash", "text_hash", "metadata_view_hash")}
    return {"object": head.id, "version": 1, "token": head.token, **hashes}


def test_what_a_tool_call_read_is_a_static_reference(vault: Vault) -> None:
    pin, refs = pinned(vault, "/v/a.md", "old"), [id_of("/v/a.md"), id_of("/v/b.md")]
    vault.store.commit(Batch(puts=[call("toolu_1", file_version_ref=pin, file_refs=refs)]))
    vault.delete("/v/a.md")
    (edge,) = graph_of(vault).links("toolu_1")
    assert (edge.target, edge.reference.static, edge.version_ref) == (refs[0], True, pin)
    vault.write("/v/b.md", "new")
    assert [e.reference.relation for e in graph_of(vault).links("toolu_1")] == ["reads", "touches"]


def test_tasks_and_chats_are_in_the_graph_by_the_fields_of_their_type(vault: Vault) -> None:
    vault.write("/v/a.md", "about [[task-2]]")
    task: dict[str, Any] = {"project": "p", "title": "T", "created_ms": 0, "updated_ms": 0}
    task["provenance"] = PROVENANCE
    tasks = [
        TaskDocument(id="task-1", **task),
        TaskDocument(
            id="task-2",
            **task,
            **{"content": "see [[a]]", "dependencies": [TaskDependency(on="task-1")]},
            links=[TaskLink(object="toolu_2", relation="output")],
        ),
    ]
    chat = ChatDocument(id="chat:s", session_ref="session:s", provenance=PROVENANCE)
    of_chat = {"tool": "bash", "chat_ref": "chat:s"}
    calls = [
        call(f"toolu_{n}", turn_ref=f"turn:s:{12 - n}", position=n, parent_ref=parent, **of_chat)
        for n, parent in ((1, None), (2, "toolu_1"), (10, None))
    ]
    vault.store.commit(Batch(puts=[d.seal() for d in (chat, *tasks, *calls)]))
    graph = graph_of(vault)

    def links(id: str) -> list[tuple[str, str, str]]:
        return [(e.reference.field, e.reference.relation, e.target) for e in graph.links(id)]

    assert links("task-2") == [
        *[("dependencies[0]", "blocks", "task-1"), ("links[0]", "output", "toolu_2")],
        ("content", "mentions", id_of("/v/a.md")),
    ]
    assert [edge.source for edge in graph.backlinks("task-2")] == [id_of("/v/a.md")]
    assert links("toolu_2") == [
        ("parent_ref", "parent", "toolu_1"),
        ("chat_ref", "within", "chat:s"),
    ]
    made = expand(vault.store, graph, ["chat:s"], budget=0, content=False, field="toolcall_ids")
    assert [item.node.id for item in made] == ["toolu_10", "toolu_2", "toolu_1"]
    blocked = expand(vault.store, graph, ["task-2"], depth=1, budget=99, field="content")
    assert [(item.node.id, item.distance) for item in blocked] == [
        (id_of("/v/a.md"), 0),
        ("task-2", 1),
    ]


def test_a_heading_or_block_that_is_not_there_is_reported(vault: Vault) -> None:
    vault.write(
        "/v/a.md", '# Title\n## Low *water* {#low}\ntext ^b1\n<a id="x">\n## Same\n## Same\n'
    )
    there = "[[a#title]] [[a#Title#Low water]] [x](a.md#low-water) [[a#^b1]] [x](a.md#same-1)"
    vault.write("/v/b.md", f"{there} [x](a.md#x) [x](a.md#low) [[a#Ebb]] [[a#^b2]] [[x.txt#L1]]")
    vault.write("/v/x.txt", "no Markdown")
    lost = graph_of(vault).missing_headings()
    assert [item.reference.heading for item in lost] == ["Ebb", "^b2"]


def test_what_a_static_reference_means_stays_and_is_verified(vault: Vault) -> None:
    pin = pinned(vault, "/v/a.md", "old")
    for id, recorded in (("toolu_1", pin), ("toolu_2", {**pin, "text_hash": "0" * 64})):
        vault.store.commit(Batch(puts=[call(id, file_version_ref=recorded)]))
    vault.write("/v/a.md", "new")
    vault.write("/v/b.md", "[[@1 v1]]")
    vault.write("/v/d/c.md", "[[@1 v9]]")
    for ordinal, path in ((1, "/v/a.md"), (2, "/v/b.md"), (3, "/v/d/c.md")):
        met = MemberDocument(
            id=member_id("s1", ordinal),
            **{"session": "s1", "ordinal": ordinal, "object": id_of(path)},
            **{"object_type": "file", "version_ref": pin},
        )
        vault.store.commit(Batch(puts=[met.seal()]))
    graph = graph_of(vault)

    def expanded(id: str) -> tuple[str | None, str]:
        item = expand(vault.store, graph, [id], depth=1, budget=1000)[1]
        return item.content, item.note

    assert expanded("toolu_1") == ("old", "")
    assert expanded("toolu_2") == (None, "what is stored is not the version that was recorded")
    assert expanded(id_of("/v/b.md")) == ("old", "")
    assert expanded(id_of("/v/d/c.md")) == (None, "@1 has no v9")

    def said(path: str, **asked: Any) -> list[str | None]:
        """The contents that the references in a file lead to."""
        graph = graph_of(vault)
        found = expand(vault.store, graph, [id_of(path)], budget=1000, **asked)
        return [item.content for item in found if item.node.id != id_of(path)]

    vault.write("/v/b.md", "[[a]], which was [[@1 v1]], and [[@1]]")
    assert said("/v/b.md", depth=1) == said("/v/b.md", field="content") == ["new", "old"]
    vault.move("/v/a.md", "/v/d/e/b.md")
    assert said("/v/b.md", depth=1) == ["new", "old"]
    vault.move("/v/b.md", "/v/Old Name.md")
    assert said("/v/Old Name.md", field="content") == ["new", "old"]
    vault.delete("/v/d/e/b.md")
    assert said("/v/Old Name.md", depth=1) == said("/v/Old Name.md", field="content") == ["old"]


def test_names_that_are_no_text_are_kept_apart(vault: Vault) -> None:
    vault.store.commit(Batch(puts=[document("/v/\udce4.md", "[[\udce4]] [[\ud83d]] #\udce4")]))
    (found,) = graph_of(vault).unresolved()
    assert found.reference.target == "\ud83d"
    assert graph_of(vault).tags() == [("\udce4", 1)]
