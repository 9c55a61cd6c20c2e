"""Pages of working memory: sections, and writers who do not lose each other's work."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from foredeck.errors import ToolError
from foredeck.model.memory import by_an_agent
from foredeck.store.erasing import plan_forgetting
from foredeck.store.sessions import documents_of
from foredeck.store.store import Store, open_sqlite
from foredeck.working import (
    TEMPLATE,
    ContextUpdates,
    PageForm,
    PageRefused,
    WorkingMemory,
    WorkingSection,
    page_of,
    sections_of,
)
from store.sessions import write_sample


def page(store: Store, form: PageForm | None = None, max_chars: int = 4000) -> WorkingMemory:
    return WorkingMemory(store, "resource", "p", form or PageForm(), max_chars, by_an_agent("s"))


def updates(store: Store, form: PageForm | None = None, max_chars: int = 4000) -> ContextUpdates:
    return ContextUpdates({"resource": page(store, form, max_chars)})


def test_a_page_that_nobody_has_written_says_nothing(store: Store) -> None:
    assert page(store).read().text == TEMPLATE
    assert WorkingSection([page(store)]).text(1000) == ""


def test_a_section_is_replaced_and_the_template_stays_out_of_view(
    store: Store, snapshot: SnapshotAssertion
) -> None:
    updates(store).update("- Language: Python\n- Database:", "tech stack")
    updates(store).update("## Decisions\n- No ORM", "Decisions")

    assert page(store).read().text == snapshot
    assert WorkingSection([page(store)]).text(1000) == snapshot


def test_an_empty_section_goes_back_to_the_template(store: Store) -> None:
    told = updates(store)
    told.update("- Language: Python", "Tech Stack")
    told.update("- No ORM", "Decisions")
    told.update("", "Tech Stack")
    told.update(" \n", "Decisions")

    assert page(store).read().text == TEMPLATE


def test_what_the_model_is_told(store: Store, snapshot: SnapshotAssertion) -> None:
    one, two = updates(store), updates(store)

    assert [
        one.update("- Language: Python", "Tech Stack"),
        two.update("- Blocker: none", "Current Work"),
        two.update("- Blocker: CI", "Current Work"),
    ] == snapshot


def test_replacing_a_page_that_another_session_has_changed_is_refused(
    store: Store, snapshot: SnapshotAssertion
) -> None:
    one, two = updates(store), updates(store)
    one.update("- Language: Python", "Tech Stack")

    with pytest.raises(ToolError) as refused:
        two.update("# Mine\n", None)

    assert str(refused.value) == snapshot
    assert two.update("# Mine\n## Tech Stack\n- Language: Python", None).startswith("Kept in")


def test_headings_in_what_a_session_writes_itself_are_not_said_to_be_others(store: Store) -> None:
    one, two = updates(store), updates(store)
    assert "another session" not in one.update("- new\n## Decisions\n- SQLite", "Current Work")

    told = two.update("- Testing framework: pytest", "User Preferences")

    assert told.partition("Changed by another session:\n")[2] == (
        " ## Current Work\n - new\n ## Decisions\n - SQLite"
    )


@pytest.mark.parametrize(
    ("text", "section", "said"),
    [
        ("x" * 300, "Notes", "characters, and 200 are kept"),
        ("x", "## Notes", "by its heading alone"),
        ("## A\nx\n## a\ny", None, "make them one"),
    ],
)
def test_refusals(store: Store, text: str, section: str | None, said: str) -> None:
    told = updates(store, PageForm("# Short\n"), max_chars=200)

    with pytest.raises(ToolError, match=said):
        told.update(text, section)
    assert page(store).read().token is None


def test_an_unknown_scope_is_refused(store: Store) -> None:
    with pytest.raises(ToolError, match="scope 'thread'"):
        updates(store).update("x", "A", "thread")


def test_each_change_is_a_version(store: Store) -> None:
    told = updates(store)
    told.update("- One", "A")
    told.update("- Two", "A")
    told.update("- Two", "A")

    assert len(store.history(page(store).id)) == 2


def test_a_long_page_says_how_much_is_left_out(store: Store) -> None:
    updates(store).update("\n".join(f"- Line {n}" for n in range(50)), "A")
    section = WorkingSection([page(store)])

    for limit in (0, 10, 40, 200, 400):
        text = section.text(limit)
        assert len(text) <= limit
        assert not text or text.endswith("more characters)")
    assert section.text(4000).endswith("- Line 49")


def test_writers_at_once_lose_no_section(tmp_path: Path) -> None:
    path = tmp_path / "foredeck.db"
    open_sqlite(path).close()

    def write(name: str) -> None:
        with closing(open_sqlite(path)) as own:
            told = updates(own)
            for number in range(5):
                told.update(f"- {number}", f"{name} {number}")

    writers = [threading.Thread(target=write, args=(f"writer {n}",)) for n in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    with closing(open_sqlite(path)) as store:
        names = {part.name for part in sections_of(page(store).read().text)}
        assert {f"writer {n} {k}" for n in range(3) for k in range(5)} <= names


NAMES = st.sampled_from(["A", "b c", "Tech Stack", "Current  work"])
BODIES = st.text(alphabet="ab #\n`-:", max_size=40)


@given(st.lists(st.tuples(NAMES, BODIES), max_size=8))
def test_any_changes_leave_a_page_that_reads_as_it_was_written(
    changes: list[tuple[str, str]],
) -> None:
    text = TEMPLATE
    for name, body in changes:
        try:
            text = PageForm().check(PageForm().put(text, name, body))
        except PageRefused:
            continue
        assert page_of(sections_of(text)) == text
    assert "- Language:\n" not in PageForm().shown(text)


def test_a_sessions_own_page_goes_with_the_session(store: Store) -> None:
    write_sample(store, "first")
    own = WorkingMemory(store, "thread", "first", PageForm(), 4000, by_an_agent("first"))
    own.put("A", "- b")
    page(store).put("A", "- b")

    (plan,) = plan_forgetting(store, ["first"])

    assert own.id in plan.documents
    assert page(store).id not in plan.documents
    assert own.id in documents_of(store, "first")
