"""`foredeck index`, `notes`, `note`, `graph`, `backlinks`, `tags` and `expand`, on real files."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cli.stored_session import SESSION
from commands import Foredeck


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A few files that refer to each other, in the current folder, not taken in yet."""
    folder = tmp_path / "vault"
    (folder / "notes").mkdir(parents=True)
    monkeypatch.chdir(folder)
    tides = '---\nparent: "[[Sea]]"\ntags: [sea/low]\n---\n# Tides\n[[Sea]] `[[no]]`'
    write("notes/tides.md", tides)
    write("notes/sea.md", "# Sea\n#sea and [[tides]], [[nowhere]], [[Log]]")
    write("notes/Lonely.md", "nothing")
    write("README.md", "[read](notes/tides.md#part)")
    write("docs/one.md", "# Log")
    write("docs/two.md", "# log")
    return folder


def write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")


def names(rows: list[dict[str, Any]]) -> list[str]:
    return [Path(row["path"]).name for row in rows]


def test_index_is_idempotent_and_follows_what_happens(vault: Path, foredeck: Foredeck) -> None:
    first = foredeck.json("index", ".")
    assert (first["files"], first["new"]) == (6, 6)
    again = foredeck.json("index", ".", "README.md")
    assert (again["files"], again["new"], again["changed"]) == (6, 0, 0)
    write("README.md", "[[Sea]]")
    (vault / "docs/two.md").unlink()
    (vault / "notes/tides.md").rename(vault / "notes/ebb.md")
    third = foredeck.json("index", ".")
    assert (third["new"], third["moved"], third["changed"], third["deleted"]) == (1, 1, 1, 2)
    assert len(foredeck.json("graph", "--backlinks", "notes/ebb.md")["edges"]) == 1
    assert "1 reference to something unknown, 0 ambiguous" in foredeck("notes", "--broken")


def test_index_is_bounded_and_leaves_out_what_git_ignores(vault: Path, foredeck: Foredeck) -> None:
    assert "more than 5 files" in foredeck("index", ".", "--limit", "5", code=2)
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    subprocess.run(["git", "init", "-q"], cwd=vault, check=True)
    write(".gitignore", "docs/\n")
    assert foredeck.json("index", ".")["new"] == 5
    foredeck("index", "missing", code=4)


def test_a_file_as_of_a_commit_is_taken_in_by_its_name(vault: Path, foredeck: Foredeck) -> None:
    if shutil.which("git") is None:
        pytest.skip("needs git")
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    for arguments in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", "one")):
        subprocess.run(["git", *arguments], cwd=vault, check=True)
    write("docs/one.md", "# Another")
    url = "https://example.com/a.pdf"
    taken = foredeck.json("index", "docs", "git:HEAD:docs/one.md", url)
    assert (taken["files"], taken["new"]) == (2, 2)
    old, page = taken["pointers"]
    assert [old["new"], old["said"], page["name"], page["said"]] == [
        *(True, "5 characters", url, "pointed to")
    ]
    again = foredeck.json("index", "git:HEAD:docs/one.md")
    assert again == {**again, "files": 0, "pointers": [{**old, "new": False}]}
    for name, text in ((old["name"], "# Log"), ("docs/one.md", "# Another")):
        assert foredeck("cat", name) == text
    assert "`foredeck index git:HEAD:docs/one.md` takes it in" in foredeck(
        "cat", "git:HEAD:docs/one.md", code=4
    )
    said = foredeck("index", "git:HEAD:docs/none.md", code=None)
    assert "There is no 'docs/none.md' in HEAD" in said
    nodes = foredeck.json("graph", "docs/one.md")["nodes"]
    assert [node["path"] for node in nodes] == [str(vault / "docs/one.md")]


def test_notes_are_listed_by_folder_tag_and_links(vault: Path, foredeck: Foredeck) -> None:
    foredeck.json("index", vault)
    listed = foredeck.json("notes")["notes"]
    assert names(listed) == ["Lonely.md", "sea.md", "tides.md"]
    assert listed[2]["tags"] == ["sea/low"]
    assert names(foredeck.json("notes", "--tag", "#Sea")["notes"]) == ["sea.md", "tides.md"]
    assert names(foredeck.json("notes", "--tag", "sea/low")["notes"]) == ["tides.md"]
    assert names(foredeck.json("notes", "--orphans")["notes"]) == ["Lonely.md"]
    assert len(foredeck.json("notes", "--all")["notes"]) == 6
    assert foredeck.json("graph", "--tags")["tags"] == [
        {"tag": "sea", "files": 1},
        {"tag": "sea/low", "files": 1},
    ]
    assert "3 notes; 3 other Markdown files, with --all." in foredeck("notes")


def test_folders_of_notes_are_those_at_the_top_of_the_project(
    vault: Path, foredeck: Foredeck
) -> None:
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    subprocess.run(["git", "init", "-q"], cwd=vault, check=True)
    write("sub/notes/elsewhere.md", "text")
    write("sub/notes/said.md", "---\nkind: note\n---\n")
    foredeck.json("index", ".")
    listed = names(foredeck.json("notes")["notes"])
    assert listed == ["Lonely.md", "sea.md", "tides.md", "said.md"]


def test_a_heading_that_is_not_there_is_said(vault: Path, foredeck: Foredeck) -> None:
    write("notes/parts.md", "[[tides#Tides]] [[tides#Ebb]] ![[sea#^block]] [x](tides.md#tides)")
    foredeck.json("index", vault)
    found = foredeck.json("notes", "--broken")["headings"]
    said = [(Path(item["path"]).name, item["heading"]) for item in found]
    assert said == [("README.md", "part"), ("parts.md", "Ebb"), ("parts.md", "^block")]
    assert "tides.md has no #Ebb" in foredeck("notes", "--broken")


def test_a_broken_reference_is_named_by_its_line(vault: Path, foredeck: Foredeck) -> None:
    write("notes/sea.md", "# Sea\n\n- and [[nowhere]]")
    foredeck.json("index", vault)
    assert "notes/sea.md:3: [[nowhere]] is unknown" in foredeck("notes", "--broken")


def test_broken_and_ambiguous_references_are_said(vault: Path, foredeck: Foredeck) -> None:
    foredeck.json("index", vault)
    broken = foredeck.json("notes", "--broken")["broken"]
    assert [(item["target"], names(item["candidates"])) for item in broken] == [
        ("nowhere", []),
        ("Log", ["one.md", "two.md"]),
    ]


def test_graph_backlinks_and_expand(vault: Path, foredeck: Foredeck) -> None:
    foredeck.json("index", vault)
    graph = foredeck.json("graph", "Tides", "--depth", "2")
    assert names(graph["nodes"]) == ["tides.md", "README.md", "sea.md"]
    assert set(graph["nodes"][0]) == {"id", "type", "title", "path", "distance"}
    relations = [edge["relation"] for edge in graph["edges"]]
    assert sorted(relations) == ["mentions", "mentions", "mentions", "parent"]
    for edge in graph["edges"]:
        path = next(n["path"] for n in graph["nodes"] if n["id"] == edge["from"])
        link = Path(path).read_text(encoding="utf-8")[edge["start"] : edge["end"]]
        assert link[0] == "["
        assert link[-1] in "])"
    parents = foredeck.json("graph", "--backlinks", "[[Sea]]", "--relation", "parent")
    assert (names(parents["nodes"]), len(parents["edges"])) == (["tides.md"], 1)
    assert foredeck("graph", "Sea", "--dot").startswith("digraph notes {")
    text = foredeck("graph", "--content", "README.md", "--depth", "2", "--budget", "70")
    assert [line for line in text.split("\n") if line.startswith("## ")] == [
        f"## {vault / name}" for name in ("README.md", "notes/tides.md", "notes/sea.md")
    ]
    assert "over the budget" in text
    metadata = foredeck.json("graph", "--content", "Sea", "tides", "--metadata")["objects"]
    assert [item["content"] for item in metadata] == [None, None]


def test_a_field_of_references_is_expanded(vault: Path, foredeck: Foredeck) -> None:
    foredeck.json("index", vault)
    found = foredeck.json("graph", "--content", "Tides", "--field", "frontmatter.parent")["objects"]
    assert (names(found), [item["distance"] for item in found]) == (["sea.md"], [0])
    assert found[0]["content"].startswith("# Sea")
    further = foredeck.json(
        "graph", "--content", "Tides", "--field", "frontmatter", "--depth", "1"
    )["objects"]
    assert names(further) == ["sea.md", "tides.md"]
    said = foredeck("graph", "--content", "Tides", "--field", "nothing", code=None)
    assert "tides.md has no field 'nothing': it has " in said
    assert "frontmatter" in said


def test_a_link_to_a_field_means_what_is_in_it(vault: Path, foredeck: Foredeck) -> None:
    (vault / "notes" / "std.md").write_text("# std::vector\n", encoding="utf-8")
    (vault / "fields.md").write_text("[[Tides::frontmatter.parent]] [[std::vector]]", "utf-8")
    foredeck.json("index", vault)
    found = foredeck.json("graph", "--content", "fields.md", "--field", "content")["objects"]
    assert [(item["title"], item["content"]) for item in found] == [
        ("Tides", "[[Sea]]"),
        ("std::vector", "# std::vector\n"),
    ]
    assert names(foredeck.json("graph", "--backlinks", "Tides")["nodes"]).count("fields.md") == 1


def test_metadata_shows_view_size_and_summary(vault: Path, foredeck: Foredeck) -> None:
    foredeck.json("index", vault)
    tides = str(vault / "notes" / "tides.md")
    foredeck("name", tides, "--short", "Ebb and flow")
    (item,) = foredeck.json("graph", "--content", "Tides", "--metadata")["objects"]
    text = Path(tides).read_text(encoding="utf-8")
    assert item["metadata"]["short_summary"] == "Ebb and flow"
    assert item["metadata"]["char_count"] == len(text)
    assert "short_summary" in item["metadata"]["view"]
    assert "- short_summary: Ebb and flow" in foredeck("graph", "--content", "Tides", "--metadata")


def test_an_ambiguous_name_is_refused_with_its_candidates(vault: Path, foredeck: Foredeck) -> None:
    foredeck.json("index", vault)
    said = foredeck("graph", "Log", code=4)
    assert "one.md" in said
    assert "two.md" in said
    foredeck("graph", "--backlinks", "nothing like it", code=4)


def test_a_chat_is_called_once_by_its_id(home: Path, foredeck: Foredeck) -> None:
    assert f"chat      chat:{SESSION}\n" in foredeck(home, "graph", f"chat:{SESSION}")
