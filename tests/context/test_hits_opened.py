"""Each kind of hit is opened at its place: by `activate`, by `foredeck cat`, in the inspector."""

from __future__ import annotations

import html
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from file_agent import FileAgent
from foredeck.cli.main import main
from foredeck.config import Config
from foredeck.config.load import Resolved
from foredeck.context.tools.memory_search import MemorySearch
from foredeck.hosts.protocol import ToolCallParams
from foredeck.lookup.reader import Reader
from foredeck.memory.keeping import NewMemory
from foredeck.memory.trust import load_user
from foredeck.memory.user_acts import UserActs
from foredeck.model.documents import Provenance
from foredeck.model.observations import ObservationDocument
from foredeck.store.protocol import Batch
from foredeck.tasks.board import Actor
from foredeck.tasks.work import NewTask, TaskWork
from foredeck_inspector.app import make_app
from foredeck_inspector.work import Work

LONG = "".join(f"Line {n} of a long note.\n\n" for n in range(3_000))

KINDS = {
    "message": "kingfisher",
    "toolcall": "wolverine",
    "file": "salamander",
    "note": "nightjar",
    "task": "axolotl",
    "memory": "porcupine",
    "observation": "chinchilla",
}
"""A word of each, which stands in nothing else that opening it could show."""


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileAgent]:
    """A new session of a project in which another one has left something of every kind."""
    home, work = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("work")
    (work / "notes").mkdir()
    (work / "notes" / "birds.md").write_text(f"# Birds\n{LONG}## Night\nA nightjar sings.\n{LONG}")
    first = FileAgent(home, work, "0199aaaa-first")
    for number in range(40):
        first.hear(f"Question {number}.")
        first.answer()
    first.hear("Where does the kingfisher live?")
    first.answer()
    (work / "zoo.py").write_text("animal = 'salamander'\n")
    first.read("zoo.py")
    first.read("notes/birds.md")
    first.answer()
    first.run("write", path="zoo.py", content="animal = 'newt'\n")
    first.run("bash", command="true 'a wolverine'; seq 3")
    session = first.engine.opened.session
    project = first.engine.opened.session_folder.project.id
    actor = Actor(session.info.id, "agent")
    TaskWork(session.objects.store, project, actor).create(  # type: ignore[arg-type]
        NewTask("Feed the axolotl", "It likes worms.")
    )
    UserActs(session.objects.store, load_user(home)).add(
        NewMemory("preference", "Count the porcupine")
    )
    noted = ObservationDocument(
        id="observation:made",
        session=session.info.id,
        covers=[],
        content="The user keeps animals.",
        suggestion="Weigh the chinchilla.",
        time_ms=1,
        provenance=Provenance(origin=session.info.id, generator="agent"),
    )
    session.objects.store.commit(Batch(puts=[noted.seal()]))
    first.close()
    second = FileAgent(home, work, "0199bbbb-second")
    second.answer()
    Reader(Config(home=home)).warm()
    yield second
    second.close()


def asked(agent: FileAgent, tool: str, **arguments: object) -> str:
    params = ToolCallParams(session=agent.session, id="c", tool=tool, input=arguments)
    answer = agent.engine.tool_call(params)
    text = answer["text"] if "text" in answer else answer["content"][0]["text"]  # type: ignore[typeddict-item]
    return str(text)


def type_of(kind: str) -> str:
    return "file" if kind == "note" else kind


@pytest.mark.parametrize("kind", KINDS)
def test_activate_opens_it(agent: FileAgent, kind: str) -> None:
    word = KINDS[kind]
    found = asked(agent, "memory-search", query=word, type=type_of(kind))
    title, hit, *_ = found.splitlines()
    assert title.endswith(":")
    assert f"«{word}»" in found
    opened = asked(agent, "activate", id=hit.split(", ")[0])
    assert word in opened
    assert len(opened) < 5_000


@pytest.mark.parametrize("kind", KINDS)
def test_cat_opens_it(agent: FileAgent, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    word, home = KINDS[kind], str(agent.home)
    assert main(["search", word, "--type", type_of(kind), "--home", home]) == 0
    found = capsys.readouterr().out
    hit = found.splitlines()[3]
    assert f"«{word}»" in found
    name, *_ = hit.strip().split("  ")
    assert main(["cat", *name.split(), "--home", home]) == 0
    opened = capsys.readouterr().out
    assert word in opened
    assert len(opened) < 5_000


@pytest.mark.parametrize("kind", KINDS)
def test_the_inspector_opens_it(agent: FileAgent, kind: str) -> None:
    word = KINDS[kind]
    config = Config(home=agent.home)
    reader = Reader(config)
    with TestClient(make_app(reader, Work(reader), Resolved(config, {}))) as client:
        page = client.get("/search", params={"q": word, "type": type_of(kind)}).text
        assert f"<mark>{word}</mark>" in page
        found = client.get("/search.json", params={"q": word, "type": type_of(kind)}).json()
        (hit,) = found["groups"][0]["hits"]
        assert html.escape(hit["address"]) in page
        opened = client.get(hit["address"].partition("#")[0]).text
    assert word in opened


def test_a_file_that_was_read_and_written_is_one_hit(agent: FileAgent) -> None:
    found = asked(agent, "memory-search", query="nightjar", limit=9)
    assert found.count("birds.md") == 1
    assert "and 1 more of this file" in found


def test_what_a_person_reads_of_a_search_names_no_tool_of_the_models(agent: FileAgent) -> None:
    memory = agent.engine.opened.facilities.part(MemorySearch)
    said = memory.for_user("wolverine", 5)[0]
    assert "0199aaaa" in said
    assert "::args.command" in said
    assert "activate" not in said
    assert said.splitlines()[0].endswith("`foredeck cat NAME` prints one in full.")


def test_memory_is_found_while_it_is_kept_and_by_whom_it_may_be_shown_to(
    agent: FileAgent, capsys: pytest.CaptureFixture[str]
) -> None:
    acts = UserActs(agent.engine.opened.session.objects.store, load_user(agent.home))
    entry = acts.add(NewMemory("preference", "Never feed a capybara")).entry
    elsewhere = acts.add(NewMemory("decision", "Wash the capybara", project="other-project")).entry
    found = asked(agent, "memory-search", query="capybara")
    assert acts.name(entry.id) in found
    assert acts.name(elsewhere.id) not in found
    acts.delete(entry.id)
    assert asked(agent, "memory-search", query="capybara").startswith("Nothing found")
    main(["search", "capybara", "--home", str(agent.home)])
    said = capsys.readouterr().out
    assert "Wash the «capybara»" in said
    assert "Never feed" not in said
