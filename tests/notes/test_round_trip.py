"""References from text to the store, through the layer, and written out again: always the same."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import examples
from foredeck.derived.follower import Follower
from foredeck.notes.markdown import parse_note
from foredeck.notes.parsed import CONTENT, Reference
from foredeck.notes.resolving import references_of
from foredeck.store.protocol import Batch
from foredeck.store.store import Store, open_sqlite

from .test_graph import document
from .test_markdown import REFERENCES, write_wikilink

OTHERS = st.sampled_from(
    [
        *("[x](d/a%20b.md#part)", "![i](../c.png)", "<https://a.b>", "`[[code]]`", "\\[[no]]"),
        *("[[@7 v2]]", "![[@7 v2|was]]", "#tag/sub", "```\n[[fenced]]\n```", "| a | [[t\\|l]] |"),
        *("[[\udce4]]", "[[É]] 🌊 [[潮#水|海]]", "[[a]][[b]]", "- [x] [[done]]", "<!-- [[c]] -->"),
    ]
)
LINKS = st.one_of(REFERENCES.map(write_wikilink), OTHERS)
HEADS = st.sampled_from(
    [
        "",
        "\ufeff---\nkind: note\n---\n",
        '---\nparent: "[[Sea|the sea]]"\nsee: ["[[a#b]]", "[[@3 v1]]"]\ntags: [x]\n---\n',
        "---\nbroken: [\n---\n",
    ]
)
TEXTS = st.builds(
    lambda head, parts, end: head + end.join(parts),
    HEADS,
    st.lists(LINKS, max_size=8),
    st.sampled_from(["\n", "\n\n", "\r\n\r\n", " word "]),
)


def kept(store: Store, home: Path, text: str) -> tuple[str, list[Reference]]:
    """What a store has of a text, and the layer of its references, in the order of the text."""
    file = document("/v/a.md", text)
    store.commit(Batch(puts=[file]))
    with Follower(store, "notes", home) as follower:
        follower.catch_up()
        (number,) = follower.db.execute("SELECT number FROM object WHERE id = ?", (file.id,))
        rows = references_of(follower.db, number)
    stored = store.get(file.id, type(file))
    return stored.content or "", [row.reference for row in rows]


def rendered(text: str, references: list[Reference]) -> str:
    """The text with each of its wikilinks written anew from its reference."""
    at, parts = 0, []
    for reference in sorted(references, key=lambda r: r.start):
        link = text[reference.start : reference.end]
        if reference.style == "wiki":
            written = write_wikilink(reference)
            link = written.replace("|", "\\|") if "\\|" in link else written
        parts += [text[at : reference.start], link]
        at = reference.end
    return "".join([*parts, text[at:]])


def check(store: Store, home: Path, text: str) -> None:
    content, references = kept(store, home, text)
    assert content == text
    assert references == parse_note(text).references
    again = parse_note(rendered(content, references)).references
    assert list(map(_meaning, again)) == list(map(_meaning, references))
    for reference in references:
        assert reference.field == CONTENT or reference.field.startswith("frontmatter.")


def _meaning(reference: Reference) -> tuple[object, ...]:
    return (
        *(reference.target, reference.relation, reference.embed, reference.heading),
        *(reference.label, reference.version, reference.field, reference.style),
    )


@settings(max_examples=examples(300), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(TEXTS, min_size=1, max_size=3))
def test_parsed_stored_rendered_and_parsed_again(texts: list[str]) -> None:
    with TemporaryDirectory() as folder:
        home = Path(folder)
        with closing(open_sqlite(home / "store.db")) as store:
            for text in texts:
                check(store, home, text)
