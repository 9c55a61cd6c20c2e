"""Notes and links through the model's tools: parts by name, titles, metadata, what is linked."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from context.conftest import NewHost
from context.scenes import ask
from context.working import Work
from foredeck.context.state.objects import store_versions
from foredeck.errors import ToolError
from foredeck.notes import live_graph

SEA = "---\ntags: [sea]\n---\n# Sea\n[[Tides]] and [[nowhere]], [[Log]]\n## Deep\n![[chart.png]]\n"
TIDES = (
    '---\nparent: "[[Sea]]"\n---\n# Tides\n## Low water\nmud ^mud\n## High\nwater [[Sea#Deep]]\n'
)


@pytest.fixture
def work(new_host: NewHost, tmp_path: Path) -> Work:
    """An agent that has written two notes; two more lie beside them that nobody has read."""
    folder = tmp_path / "vault"
    folder.mkdir()
    work = Work(new_host(cwd=str(folder), disk=True))
    work.file("docs/one.md", "# Log")
    work.file("docs/two.md", "# log")
    ask(work.host)
    work.write("notes/sea.md", SEA)
    work.write("notes/tides.md", TIDES)
    work.read("docs/one.md")
    work.read("docs/two.md")
    return work


Activate = Callable[..., str]


@pytest.fixture
def activate(work: Work) -> Activate:
    """What `activate` answers."""

    def answer(id: Any, **more: Any) -> str:
        result = work.host.tool(f"t{id}{more}", "activate", id=id, **more)
        return str(result["content"][0]["text"])

    return answer


def refused(activate: Activate, id: str, **more: Any) -> str:
    with pytest.raises(ToolError) as caught:
        activate(id, **more)
    return str(caught.value)


@pytest.mark.parametrize("name", ["Sea", "[[Sea]]", "[[sea|that one]]", "[[notes/sea]]", "[[@3]]"])
def test_a_note_goes_by_its_title_and_as_a_link_writes_it(activate: Activate, name: str) -> None:
    said = activate(name, show="metadata")
    assert said.startswith("@3 file ")
    assert said.endswith("/vault/notes/sea.md chars=84")


def test_a_name_of_two_notes_is_refused_with_both(activate: Activate) -> None:
    assert refused(activate, "[[Log]]") == (
        "'Log' fits several files: docs/one.md, docs/two.md. Use a path."
    )


def test_a_part_by_its_heading_its_block_or_its_field(activate: Activate) -> None:
    assert activate("@5#low water") == "## Low water\nmud ^mud\n"
    assert activate("[[Tides#Low water]]") == "## Low water\nmud ^mud\n"
    assert activate("notes/tides.md#high").startswith("## High\nwater")
    assert activate("@5#^mud") == "mud ^mud"
    assert activate("@5::headings") == '[\n "# Tides",\n "## Low water",\n "## High"\n]'
    assert activate("@5::frontmatter.parent", show="metadata").startswith("## ")
    assert activate("@3::frontmatter.tags[0]") == "sea"
    assert activate("@3#Deep", show="metadata") == "@3#Deep chars=23"


def test_a_part_that_is_not_there_is_refused_with_those_that_are(activate: Activate) -> None:
    assert refused(activate, "@5#Ebb") == (
        "@5 has no heading 'Ebb': it has #Tides, #Low water, #High."
    )
    assert refused(activate, "@3::nothing").startswith("@3 has no field 'nothing': it has content,")
    assert refused(activate, "@3", show="all") == (
        "\"show\" is one of content, metadata, links, not 'all'."
    )


def test_metadata_brings_an_object_into_the_pool_without_its_content(
    work: Work, activate: Activate
) -> None:
    work.file("notes/unread.md", "text")
    work.run("ls", "unread.md", path="notes")
    said = activate("notes/unread.md", show="metadata")
    ordinal = int(said.split()[0].removeprefix("@"))
    assert "notes/unread.md" in said
    sets = work.host.state.chat.branch.sets
    assert (ordinal in sets.pool, ordinal in sets.active) == (True, False)


def test_links_say_what_is_linked_without_any_content(
    activate: Activate, snapshot: SnapshotAssertion, work: Work
) -> None:
    shown = [activate(id, show="links") for id in ("[[Sea]]", "@5", "@5#High", "@6")]
    assert "\n\n".join(shown).replace(str(work.folder), "VAULT") == snapshot


def test_what_a_list_of_links_names_has_a_handle(work: Work, activate: Activate) -> None:
    objects = work.host.state.objects
    work.file("notes/other.md", "# Other\n")
    unmet = objects.source.sight(str(work.folder / "notes/other.md"), "read")
    store_versions(objects.store, [unmet])
    work.write("notes/hub.md", "[[other]]")
    assert unmet.object_id not in objects.index.by_object
    said = activate("[[hub]]", show="links")
    ordinal = objects.index.by_object[unmet.object_id]
    assert f"- @{ordinal} notes/other.md" in said
    assert "# Other" in activate(f"@{ordinal}")


def test_a_list_of_links_is_bounded(work: Work, activate: Activate) -> None:
    for number in range(30):
        work.file(f"notes/n{number}.md", f"# {'long ' * 60}{number}\n[[hub]]")
    work.write("notes/hub.md", "".join(f"[[n{number}]] [[x{number}]] " for number in range(30)))
    for number in range(30):
        work.read(f"notes/n{number}.md")
    said = activate("[[hub]]", show="links")
    assert [said.count(f"\n- and {count} more") for count in (10, 11)] == [2, 1]
    assert len(said) < 12_000


def test_a_link_resolves_in_the_prompt_s_own_terms_after_a_rename(
    work: Work, activate: Activate
) -> None:
    (work.folder / "notes/sea.md").rename(work.folder / "notes/ocean.md")
    work.run("bash", "", command="mv notes/sea.md notes/ocean.md")
    said = activate("notes/ocean.md", show="links")
    assert "notes/tides.md" in said
    assert "notes/ocean.md" in activate("@5", show="links")


def test_a_store_that_is_not_read_yet_is_asked_again(
    work: Work, activate: Activate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foredeck.notes.BATCH", 1)
    objects, home = work.host.state.objects, work.host.home
    slow = partial(live_graph, objects.store, home, patience_s=-1)
    object.__setattr__(objects, "open_graph", slow)
    assert refused(activate, "@3", show="links") == (
        "References are still being read for the first time: ask again."
    )
    while (said := attempt(activate)) is None:
        pass  # what was read is kept, so that it comes to an end
    assert "Refers to:" in said
    object.__setattr__(objects, "open_graph", None)
    assert refused(activate, "@3", show="links") == "References cannot be looked up here."
    assert refused(activate, "[[Sea]]").startswith("No object is called 'Sea'.")


def attempt(activate: Activate) -> str | None:
    try:
        return activate("@3", show="links")
    except ToolError:
        return None


def test_other_tools_take_titles_of_what_the_session_has_met(work: Work) -> None:
    work.host.tool("p", "pin", id="[[Sea]]")
    assert 3 in work.host.state.chat.branch.sets.pinned
    work.host.tool("d", "deactivate", id="Tides")
    assert 5 not in work.host.state.chat.branch.sets.active
    work.file("notes/far.md", "# Far")
    with pytest.raises(ToolError, match="No object is called 'Far'"):
        work.host.tool("u", "unpin", id="Far")
