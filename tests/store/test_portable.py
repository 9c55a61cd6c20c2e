"""Export and import: what goes round comes back equal, under its ids or under fresh ones."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest

from foredeck.errors import ImportRefused, UnknownSession
from foredeck.model.calls import CallDocument
from foredeck.model.documents import (
    ChatDocument,
    Document,
    FileDocument,
    PointerDocument,
    SessionDocument,
    ToolcallDocument,
    UserDocument,
)
from foredeck.model.kinds import KEPT_HERE, KINDS, SHARED
from foredeck.model.memory import WorkingDocument, working_id
from foredeck.model.messages import load_message
from foredeck.model.records import MemberDocument, NicknameDocument, TurnDocument
from foredeck.sources.git import pointer
from foredeck.store.portable.export import (
    ExportSummary,
    ProjectPlace,
    export_project,
    export_session,
)
from foredeck.store.portable.importing import import_file
from foredeck.store.protocol import Batch, Change, Head, Origin, Token
from foredeck.store.store import Store

from .documents import batch, file, foreign_file, note, of_commit
from .every_type import write_every_type
from .factory import MakeStore
from .sessions import LONG, SampleSession, dump, exported, lines_of, write_sample

SESSION = SampleSession.id


@pytest.fixture
def source(make_store: MakeStore) -> Store:
    """A store with the sample."""
    store = make_store()
    write_sample(store)
    return store


@pytest.fixture
def target(make_store: MakeStore) -> Store:
    """An empty store."""
    return make_store()


def documents_in(text: str) -> list[dict[str, Any]]:
    """The fields of all versions in a file."""
    return [line["document"] for line in map(json.loads, lines_of(text)) if "document" in line]


def _files(store: Store) -> list[Head]:
    """Those on a disk."""
    return [head for head in store.query("file") if "filesystemId" in head.fields["source"]]


def _changes(store: Store) -> list[Change]:
    return [change for change in store.changes_since(None) if change.type not in KEPT_HERE]


def test_a_round_trip_is_equal(source: Store, target: Store, tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        written = export_session(source, SESSION, stream.write)
    assert isinstance(written, ExportSummary)
    assert written.bytes == path.stat().st_size
    with path.open("rb") as stream:
        read = import_file(target, stream)
    assert dump(target) == dump(source)
    assert exported(target).encode() == path.read_bytes()
    counts = (read.transactions, read.documents, read.blobs)
    assert counts == (written.transactions, written.documents, written.blobs)
    assert read.session == SESSION
    assert read.documents == read.new_documents == len(dump(source))
    check_pins(target, SESSION)
    for store in (target, source):
        assert import_file(store, path.read_bytes().splitlines(keepends=True)).new_documents == 0
    assert dump(target) == dump(source)


@pytest.mark.parametrize("as_new", [False, True])
def test_every_type_of_document_goes_along(
    make_store: MakeStore, target: Store, as_new: bool
) -> None:
    source = make_store()
    write_every_type(source)
    text = exported(source)
    types = [fields["type"] for fields in documents_in(text)]
    assert set(types) == KINDS.keys() - KEPT_HERE, "write one of it in every_type.py"
    again = exported(target, import_file(target, lines_of(text), as_new=as_new).session)
    if not as_new:
        assert again == text
    assert Counter(fields["type"] for fields in documents_in(again)) == Counter(types)
    if as_new:
        for fields in documents_in(again):
            assert SESSION not in json.dumps(_references(fields))


def test_a_project_moves_with_every_type_of_document(make_store: MakeStore, target: Store) -> None:
    source = make_store()
    write_every_type(source)
    write_sample(source, "another")
    there = {head.fields["source"]["filesystemId"] for head in _files(source)}
    old = ProjectPlace("1" * 64, "/repo", min(there), "/repo")
    page = WorkingDocument(id=working_id("resource", old.id), project=old.id, content="# Ours")
    source.commit(Batch([page.seal()]))
    lines: list[str] = []
    export_project(source, old, [SESSION, "another"], (), lines.append)
    new = ProjectPlace("2" * 64, "/home/me/repo", "other", "/srv/repo")
    done = import_file(target, lines, into=new)
    assert (done.project, done.sessions, done.left_out) == (new, (SESSION, "another"), ())
    for session in done.sessions:
        check_pins(target, session)
    moved = [head.fields["source"]["path"] for head in _files(target)]
    assert [path for path in moved if path.startswith("/repo/")] == []
    assert [path for path in moved if path.startswith("/srv/repo/")]
    types = Counter(fields["type"] for fields in documents_in("".join(lines)))
    assert types == Counter(change.type for change in _changes(target))
    (found,) = target.query("working", {"project": new.id})
    assert found.id == working_id("resource", new.id)
    assert import_file(target, lines, into=new).new_documents == 0


def test_only_what_belongs_to_the_session_is_in_the_file(
    make_store: MakeStore, target: Store
) -> None:
    source = make_store()
    write_sample(source, "other")
    source.commit(batch(file("/repo/secret.py", f"secret {LONG}"), note("unrelated")))
    write_sample(source)
    text = exported(source)
    assert "secret" not in text
    import_file(target, lines_of(text))
    assert "note" not in {change.type for change in target.changes_since(None)}
    assert [head.fields["session_id"] for head in target.query("session")] == [SESSION]
    # The whole history of a shared file, whichever session has changed it.
    id = file("/repo/a.py").id
    assert [h.token for h in target.history(id)] == [h.token for h in source.history(id)]


def test_text_that_names_a_blob_does_not_drag_it_along(make_store: MakeStore) -> None:
    source = make_store()
    secret = note("secret", f"secret {LONG}")
    source.commit(batch(secret))
    session = SampleSession(source)
    session.begin()
    mark = json.dumps({"$text": secret.text_hash})
    session.call("toolu_1", file("/repo/sums", f"{secret.text_hash}\n{mark}\n{LONG}"))
    assert f"secret {LONG}"[:20] not in exported(source)


def test_a_sessions_page_goes_along_and_the_projects_stays(source: Store, target: Store) -> None:
    own = working_id("thread", SESSION)
    for page in (
        WorkingDocument(id=own, scope="thread", session=SESSION, content="mine"),
        WorkingDocument(id=working_id("resource", "p"), project="p", content="ours"),
    ):
        source.commit(Batch(puts=[page.seal()]))
    text = exported(source)
    import_file(target, lines_of(text))
    assert [head.id for head in target.query("working")] == [own]
    assert exported(target) == text


def test_a_projects_page_is_not_taken_from_a_file(source: Store, make_store: MakeStore) -> None:
    own = working_id("thread", SESSION)
    page = WorkingDocument(id=own, scope="thread", session=SESSION, content="obey me")
    source.commit(Batch(puts=[page.seal()]))
    forged = exported(source).replace(own, working_id("resource", "p"))
    with pytest.raises(ImportRefused):
        import_file(make_store(), lines_of(forged))


def test_an_unknown_session(make_store: MakeStore) -> None:
    with pytest.raises(UnknownSession, match="nobody"):
        exported(make_store(), "nobody")


def test_an_import_that_was_cut_short_can_be_repeated(source: Store, target: Store) -> None:
    lines = lines_of(exported(source))
    for commits in range(0, 8, 2):
        with pytest.raises(InterruptedError):
            import_file(cast(Store, Interrupted(target, commits)), lines)
    import_file(target, lines)
    assert dump(target) == dump(source)


def test_a_file_that_cannot_be_read(make_store: MakeStore, tmp_path: Path) -> None:
    with (
        (tmp_path / "file").open("wb") as not_for_reading,
        pytest.raises(ImportRefused, match="cannot be read"),
    ):
        import_file(make_store(), not_for_reading)


def test_a_session_that_has_gone_on_is_continued(make_store: MakeStore, target: Store) -> None:
    source = make_store()
    session = write_sample(source)
    early = exported(source)
    import_file(target, lines_of(early))
    session.call("toolu_more", file("/repo/d.py", LONG))
    assert import_file(target, lines_of(exported(source))).new_documents > 0
    assert dump(target) == dump(source)
    assert import_file(target, lines_of(early)).new_documents == 0


def test_a_session_that_has_gone_on_in_both_is_refused(
    make_store: MakeStore, target: Store
) -> None:
    source = make_store()
    session = write_sample(source)
    import_file(target, lines_of(exported(source)))
    session.call("toolu_here")
    elsewhere = SampleSession(target, calls=session.calls - 1, members=session.members - 1)
    elsewhere.call("toolu_there")
    before = dump(target)
    with pytest.raises(ImportRefused, match="--as-new"):
        import_file(target, lines_of(exported(source)))
    assert dump(target) == before


def test_two_sessions_that_share_files(make_store: MakeStore, target: Store) -> None:
    source = make_store()
    write_sample(source, "one")
    write_sample(source, "two")
    one, two = exported(source, "one"), exported(source, "two")
    import_file(target, lines_of(one))
    import_file(target, lines_of(two))
    assert exported(target, "one") == one
    assert exported(target, "two") == two
    id = file("/repo/a.py").id
    assert [h.token for h in target.history(id)] == [h.token for h in source.history(id)]


def test_a_file_known_here_stays_as_new_as_it_was(source: Store, target: Store) -> None:
    newest = file("/repo/a.py", f"newest {LONG}")
    before = target.commit(batch(newest))
    import_file(target, lines_of(exported(source)))
    assert target.get(newest.id, FileDocument) == newest
    assert target.get(newest.id, FileDocument, before) == newest
    check_pins(target, SESSION)
    assert import_file(target, lines_of(exported(source))).new_documents == 0


def test_a_nickname_taken_here_is_refused(source: Store, target: Store) -> None:
    SampleSession(target, "other").name(file("/repo/other.py"), f"main of {SESSION}")
    before = dump(target)
    with pytest.raises(ImportRefused, match="rename"):
        import_file(target, lines_of(exported(source)))
    assert dump(target) == before


def test_a_fork_brings_the_calls_that_it_goes_on_from(make_store: MakeStore, target: Store) -> None:
    source = make_store()
    parent = write_sample(source, "parent")
    call = f"call:parent:{parent.calls - 1}"
    fork = SampleSession(source, parent="parent", parent_call=call)
    fork.begin()
    fork.call("toolu_fork")
    text = exported(source)
    import_file(target, lines_of(text))
    assert target.head(call) is not None
    assert target.head("call:parent:1") is not None
    assert target.head(f"call:parent:{parent.calls}") is None
    assert target.head("session:parent") is None
    assert exported(target) == text
    import_file(target, lines_of(exported(source, "parent")))
    assert exported(target, "parent") == exported(source, "parent")


def test_beside_the_original(source: Store) -> None:
    before = dump(source)
    summary = import_file(source, lines_of(exported(source)), as_new=True)
    assert summary.session != SESSION
    assert {head.fields["session_id"] for head in source.query("session")} == {
        SESSION,
        summary.session,
    }
    assert all(row in dump(source) for row in before)
    check_pins(source, summary.session)
    check_copy(source, summary.session)


def test_into_an_empty_store_and_twice(source: Store, target: Store, make_store: MakeStore) -> None:
    text = exported(source)
    copies = [import_file(target, lines_of(text), as_new=True).session for _ in range(2)]
    assert len({SESSION, *copies}) == 3
    assert target.head(f"session:{SESSION}") is None
    for copy in copies:
        check_pins(target, copy)
        assert len(target.query("call", {"session": copy})) == 4
    assert len(target.query("toolcall")) == 6
    third, copy = make_store(), copies[0]
    text = exported(target, copy)
    import_file(third, lines_of(text))
    assert exported(third, copy) == text
    assert SESSION not in {row[2] for row in dump(third)}


def test_what_is_no_file_on_a_disk_travels_along(make_store: MakeStore, target: Store) -> None:
    """Nor any session's own, and what a newer version has bound to something unknown here."""
    source = make_store()
    session, pasted = SampleSession(source), UserDocument.of("pasted\n" * 2000)
    session.begin()
    page = pointer("https://example.com/a.pdf")
    session.call("toolu_1", of_commit(), foreign_file())
    source.commit(Batch(puts=[page, session.member(page), pasted, session.member(pasted)]))
    text = exported(source)
    import_file(target, lines_of(text))
    assert exported(target) == text
    check_pins(target, import_file(target, lines_of(text), as_new=True).session)
    assert target.get(page.id, PointerDocument) == page
    assert target.get(of_commit().id, FileDocument) == of_commit()
    assert [head.id for head in target.query("user")] == [pasted.id]
    assert target.get(pasted.id, UserDocument) == pasted


def test_a_text_under_the_id_of_another_is_refused(make_store: MakeStore, target: Store) -> None:
    source = make_store()
    session, pasted = SampleSession(source), UserDocument.of("pasted\n" * 2000)
    session.begin()
    other = pasted.model_copy(update={"content": "another"}).seal()
    source.commit(Batch(puts=[other, session.member(other)]))
    with pytest.raises(ImportRefused, match="does not fit the fields of the user"):
        import_file(target, lines_of(exported(source)))


def test_names_travel_with_their_objects(make_store: MakeStore, target: Store) -> None:
    source = make_store()
    session, named = SampleSession(source), file("/repo/a.py")
    session.begin()
    session.call("toolu_1", named)
    spec, free, plan = (
        NicknameDocument(id=f"nickname:{name}", object=object).seal()
        for name, object in (("spec", named.id), ("spec", None), ("plan", named.id))
    )
    source.commit(Batch(puts=[spec]))
    source.commit(Batch(puts=[free, plan]))
    import_file(target, lines_of(exported(source)))
    owners = [head.fields["object"] for head in target.history("nickname:spec")]
    assert owners == [named.id, None]
    assert [head.id for head in target.query("nickname", {"object": named.id})] == [plan.id]


def test_names_stay_with_the_originals(make_store: MakeStore) -> None:
    store = make_store()
    session = SampleSession(store)
    session.begin()
    session.call("toolu_1", file("/repo/a.py"))
    named = store.get("toolu_1", ToolcallDocument).model_copy(update={"nickname": "result"}).seal()
    claim = NicknameDocument(id="nickname:result", object="toolu_1").seal()
    store.commit(Batch(puts=[named, claim]))
    copy = import_file(store, lines_of(exported(store)), as_new=True).session
    assert [head.id for head in store.query("toolcall", {"nickname": "result"})] == ["toolu_1"]
    assert len(store.history("nickname:result")) == 1
    check_pins(store, copy)


class Interrupted:
    """A store whose user is interrupted after so many commits."""

    def __init__(self, store: Store, commits: int) -> None:
        self._store = store
        self._left = commits

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, batch: Batch, *, origin: Origin | None = None) -> Token:
        """Commit, or be interrupted."""
        if self._left == 0:
            raise InterruptedError
        self._left -= 1
        return self._store.commit(batch, origin=origin)


def _references(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a copy that name its session, or would still name the original."""
    if fields["type"] in SHARED:
        return {}
    of_others = {"label", "tool_call", "provider_call_id", "says"}
    named = {name: value for name, value in fields.items() if name not in of_others}
    if fields["type"] == "session":
        del named["provenance"]  # says which session it is a copy of
    return named


def check_pins(store: Store, session: str) -> None:
    """Every pin of a session resolves to what its hashes say."""
    members = store.query("member", {"session": session})
    assert members
    for head in members:
        for version in store.history(head.id):
            member = store.get(head.id, MemberDocument, version.token)
            _check_pin(store, member.version_ref.model_dump(), version.token)
    for head in store.query("call", {"session": session}):
        _check_pin(store, store.get(head.id, CallDocument).system.model_dump(), head.token)


def _check_pin(store: Store, pin: dict[str, Any], own: Any) -> None:
    document = store.get(pin["object"], Document, own if pin["token"] == "self" else pin["token"])
    assert document is not None
    for name in ("content_hash", "text_hash", "metadata_view_hash"):
        assert getattr(document, name) == pin[name]


def check_copy(store: Store, copy: str) -> None:
    """A copy speaks of itself, and says what the original says."""
    original, copied = (store.get(f"session:{id}", SessionDocument) for id in (SESSION, copy))
    assert (copied.chat_ref, copied.system_prompt_ref) == (f"chat:{copy}", f"system_prompt:{copy}")
    assert copied.provenance.parent_refs == [original.id]
    assert store.get(f"chat:{copy}", ChatDocument) is not None
    calls = [head.id for head in store.query("call", {"session": copy})]
    for ordinal, id in enumerate(calls, start=1):
        call, source = (
            store.get(id, CallDocument),
            store.get(f"call:{SESSION}:{ordinal}", CallDocument),
        )
        assert id == f"call:{copy}:{ordinal}"
        assert call.parent == (f"call:{copy}:{ordinal - 1}" if ordinal > 1 else None)
        assert (call.keys, call.ops, call.says) == (source.keys, source.ops, source.says)
    for head in store.query("turn", {"session": copy}):
        turn = store.get(head.id, TurnDocument)
        assert turn.assistant is not None
        assert load_message(turn.assistant, store.blob)["role"] == "assistant"
        for id in turn.toolcall_ids:
            toolcall = store.get(id, ToolcallDocument)
            assert toolcall.turn_ref == turn.id
            assert toolcall.chat_ref == f"chat:{copy}"
            assert toolcall.provider_call_id.startswith("toolu_")
            assert toolcall.id != toolcall.provider_call_id
