"""Markdown to structure: what is a reference, a tag or a heading, what is not, and where it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foredeck.notes import markdown
from foredeck.notes.markdown import parse_note
from foredeck.notes.parsed import WIKILINK, Reference, read_wikilink


def write_wikilink(reference: Reference) -> str:
    """The wikilink that reads as this reference, wherever it is."""
    version = f" v{reference.version}" if reference.static else ""
    heading = f"#{reference.heading}" if reference.heading else ""
    label = f"|{reference.label}" if reference.label else ""
    return f"{'!' if reference.embed else ''}[[{reference.whole}{version}{heading}{label}]]"


def targets(text: str) -> list[str]:
    return [reference.target for reference in parse_note(text).references]


def only(text: str) -> Reference:
    (reference,) = parse_note(text).references
    return reference


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[a b]]", Reference("a b")),
        ("[[@12]]", Reference("@12")),
        ("[[@12 v3]]", Reference("@12", version=3)),
        ("[[release v3]]", Reference("release v3")),
        ("[[d/a#Some heading|shown]]", Reference("d/a", heading="Some heading", label="shown")),
        ("[[a#^block]]", Reference("a", heading="^block")),
        ("![[a.png|200]]", Reference("a.png", "embeds", embed=True, label="200")),
        ("[x](b%20c.md#h)", Reference("b c.md", heading="h", style="markdown")),
        ("[x](<b c.md>)", Reference("b c.md", style="markdown")),
        (
            "![x](../i.png)",
            Reference("../i.png", "embeds", embed=True, label="x", style="markdown"),
        ),
        ("[x](file:///tmp/a.md)", Reference("/tmp/a.md", style="markdown")),
    ],
)
def test_a_link_is_a_reference(text: str, expected: Reference) -> None:
    found = only(f"before {text} after")
    assert (found.start, found.end) == (7, 7 + len(text))
    assert Reference(**{**_fields(found), "start": 0, "end": 0}) == expected


def _fields(reference: Reference) -> dict[str, object]:
    return {name: getattr(reference, name) for name in Reference.__slots__}


@pytest.mark.parametrize(
    "text",
    [
        *("`[[no]]`", "``a ` [[no]]``", "```\n[[no]] #no\n```", "~~~md\n[[no]]\n~~~", "    [[no]]"),
        *("\\[[no]]", "[[no\nno]]", "[[]]", "[[ ]]", "[[#within this note]]", "<!-- [[no]] -->"),
        *("<div>\n[[no]] #no\n</div>", "[x](https://example.org/a.md)", "[x](mailto:a@b.c)"),
        *("[x](#within)", "<https://example.org/#no>", "- [x] done\n\n[x]: other.md", "- [ ] open"),
    ],
)
def test_what_is_code_escaped_or_elsewhere_is_no_reference(text: str) -> None:
    assert parse_note(text).references == []


def test_a_checked_box_is_no_fact_and_what_is_to_be_done_may_have_links() -> None:
    text = "- [x] see [[a]] and [x]\n\n[x]: b.md"
    assert targets(text) == ["a", "b.md"]


def test_references_stand_where_the_text_has_them() -> None:
    text = (
        "> a [[one]]\n> lazy\nstill [[two]]\n\n# H [[three]] ##\n\n1. x\n   [[four]]\n\r\n"
        "| [[five\\|5]] | `\\|` [[six]] |\n|---|---|\n| | [[seven]] |\n| a | \\| [[eight]] |\n\n"
        "\U0001f600 [[nine]]\r\n[[ten]]"
    )
    found = parse_note(text).references
    assert [text[r.start : r.end] for r in found] == [
        *("[[one]]", "[[two]]", "[[three]]", "[[four]]", "[[five\\|5]]", "[[six]]", "[[seven]]"),
        *("[[eight]]", "[[nine]]", "[[ten]]"),
    ]
    assert found[4].label == "5"


def test_tags() -> None:
    text = "#a text #b/c-d, x#no #1 #1st (#no) `#no` ## no\n#ünï #\n\\#no"
    assert [tag.name for tag in parse_note(text).tags] == ["a", "b/c-d", "1st", "ünï"]
    assert all(text[t.start : t.end] == f"#{t.name}" for t in parse_note(text).tags)


def test_headings_and_title() -> None:
    parsed = parse_note("Under\n=====\n\n## Two ##\n\n# Later")
    assert [(h.level, h.text, h.start) for h in parsed.headings] == [
        (1, "Under", 0),
        (2, "Two", 13),
        (1, "Later", 24),
    ]
    assert parsed.title == "Under"
    assert parse_note("---\ntitle: Given\n---\n# Not this").title == "Given"


def test_properties() -> None:
    text = (
        "---\nkind: note\ntitle: 'A: b'\naliases: [Two, three]\ntags: [x/y, '#z']\n"
        'parent: "[[Up|over]]"\nsupersedes:\n  - "[[Old]]"\n  - [[Older]]\ndate: 2026-01-02\n---\n'
        "[[in the text]]"
    )
    parsed = parse_note(text)
    assert (parsed.kind, parsed.title, parsed.aliases) == ("note", "A: b", ["Two", "three"])
    assert parsed.properties["date"] == "2026-01-02"
    assert [tag.name for tag in parsed.tags] == ["x/y", "z"]
    assert [(r.relation, r.target, r.field) for r in parsed.references] == [
        ("parent", "Up", "frontmatter.parent"),
        ("supersedes", "Old", "frontmatter.supersedes"),
        ("supersedes", "Older", "frontmatter.supersedes"),
        ("mentions", "in the text", "content"),
    ]
    assert all(text[r.start : r.end].startswith("[[") for r in parsed.references)


@pytest.mark.parametrize(
    "frontmatter",
    [
        "a: &a [x, x]\nb: [*a, *a]\n",
        "a: " + "[" * 100 + "]" * 100,
        "a: " + "x" * 40_000,
        "a: !!python/object/apply:os.system [true]",
        "a: [",
        "just text",
        "a: 2024-99-99",
        "a: " + "9" * 10_000,
        "a: \ud800",
        "? {a: b}\n: c",
    ],
)
def test_frontmatter_that_cannot_be_used_is_passed_over_with_a_word(frontmatter: str) -> None:
    parsed = parse_note(f"---\n{frontmatter}\n---\n[[still read]]")
    assert parsed.properties == {}
    assert len(parsed.problems) == 1
    assert [r.target for r in parsed.references] == ["still read"]


@pytest.mark.parametrize("text", ["--- \ntext", "---\nnever: ended", "text\n---\na: b\n---\n", ""])
def test_what_only_looks_like_frontmatter_is_text(text: str) -> None:
    assert (parse_note(text).properties, parse_note(text).problems) == ({}, [])


WORDS = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], exclude_characters="[]|#\\`<"),
    min_size=1,
    max_size=12,
).filter(lambda word: word.strip() == word and not word.startswith("@"))
REFERENCES = st.builds(
    lambda target, heading, label, embed: Reference(
        target, "embeds" if embed else "mentions", embed, heading, label
    ),
    st.one_of(WORDS, st.builds("@{}".format, st.integers(1, 999))),
    st.none() | WORDS,
    st.none() | WORDS,
    st.booleans(),
)
AROUND = st.sampled_from(
    ["{}", "text {} text", "> {}", "- [ ] {}", "# {}", "| a | {} |\n|---|---|", "**{}**", "1. {}\n"]
)


@given(st.lists(st.tuples(REFERENCES, AROUND), max_size=8))
def test_what_is_written_reads_as_the_same_references(written: list[tuple[Reference, str]]) -> None:
    blocks = []
    for reference, around in written:
        link = write_wikilink(reference)
        blocks.append(around.format(link.replace("|", "\\|") if "|---" in around else link))
    text = "\n\n".join(blocks)
    found = parse_note(text).references
    assert [Reference(**{**_fields(r), "start": 0, "end": 0}) for r in found] == [
        reference for reference, _ in written
    ]
    for reference in found:
        match = WIKILINK.fullmatch(text[reference.start : reference.end])
        assert match is not None
        again = read_wikilink(match)
        assert (again.target, again.label) == (reference.target, reference.label)


@given(st.text(st.sampled_from("[]!#|`\\\n\r \t>-*<a1@()\0\ud800:/&---"), max_size=80))
def test_any_text_is_read_and_positions_lie_within_it(text: str) -> None:
    parsed = parse_note(text)
    for found in (*parsed.references, *parsed.tags):
        assert 0 <= found.start < found.end <= len(text)
    for reference in parsed.references:
        if reference.style == "wiki":
            assert WIKILINK.fullmatch(text[reference.start : reference.end])


HOSTILE = {
    "links": "[[Note one#h|label]] and #tag/sub in a line\n\n",
    "one line": "[[Note]] words in between ",
    "open brackets": "[",
    "open images": "![[",
    "closed late": "[]",
    "comments": "<!--",
    "quotes": "> ",
    "lists": "- ",
    "code": "`a ``b ",
    "cells": "|a",
    "addresses": "[a](",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_long_hostile_text_is_read_to_its_end_or_set_aside(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(markdown, "MOST_S", 0.2)
    unit = HOSTILE[name]
    parsed = parse_note(unit * (100_000 // len(unit)) + "\n\n\n# Last")
    assert [r.target for r in parsed.references[-1:]] in ([], ["Note"], ["Note one"])
    assert parsed.problems == ([TOO_LONG] if parsed.is_cut else [])


TOO_LONG = "the text takes too long to read: only its properties are read"


@pytest.mark.parametrize("unit", ["![](", "[![](", "- a\n", "|a|b|\n|-|-|\n", "# a\n", "\n"])
def test_a_text_that_would_take_minutes_has_its_properties_read(
    unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(markdown, "MOST_S", 0.05)
    parsed = parse_note("---\ntitle: Slow\ntags: [a]\n---\n# Not read\n" + unit * 350_000)
    assert (parsed.title, [tag.name for tag in parsed.tags]) == ("Slow", ["a"])
    assert (parsed.is_cut, parsed.problems) == (True, [TOO_LONG])
    assert parsed.headings == parsed.references == []


def test_so_many_links_are_read_and_the_rest_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markdown, "MOST", 2)
    parsed = parse_note("[[a]] [[b]] [[c]] #tag")
    assert [r.target for r in parsed.references] == ["a", "b"]
    assert parsed.problems == ["of 3 references the first 2 are read"]


def test_frontmatter_is_read_even_where_the_text_is_too_long() -> None:
    parsed = parse_note("---\ntitle: Long\n---\n" + "[[a]]\n" * 1_400_000)
    assert (parsed.title, parsed.references) == ("Long", [])
    problem = "the text is longer than 8,000,000 characters: only its properties are read"
    assert parsed.problems == [problem]
