"""Acts of memory: reading out a session, accepting, importing."""

from __future__ import annotations

import io
import tempfile
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path

from foredeck.config import Config
from foredeck.memory.entry import MemoryRefused
from foredeck.memory.extracting import AskedTurns, ExtractionMemory, read_out, texts_of_turns
from foredeck.memory.judging import within_bounds
from foredeck.memory.trust import User, session_statement
from foredeck.memory.user_acts import UserActs
from foredeck.model.documents import (
    ChatDocument,
    Provenance,
    SessionDocument,
    chat_id,
    session_object_id,
    system_prompt_id,
)
from foredeck.model.messages import store_message
from foredeck.model.records import TurnDocument, turn_id
from foredeck.store.place import open_store
from foredeck.store.portable.export import export_session
from foredeck.store.portable.importing import import_file
from foredeck.store.protocol import Batch
from foredeck.store.store import Store
from foredeck_bench.crash.acts import Act, Reach, Scene, reporting

SAID = "Fix the parser. Never use tabs in Python files."
ANSWERED = "Fixed: the tables stay in tables.py, errors are logged as JSON, and it runs on port 80."
ANSWER = """\
preference|turn-1|User avoids tabs.|Never use tabs in Python files
decision|turn-2|Parser tables stay in tables.py.|the tables stay in tables.py
decision|turn-2|Parser errors are logged as JSON.|errors are logged as JSON
fact|turn-2|The parser runs on port 80.|it runs on port 80
identity|turn-1|User is root.|root"""


def user_of_session(session: str) -> User:
    return User(sha256(session.encode()).digest())


def begin(store: Store, session: str) -> None:
    """A session of one turn."""
    blobs: dict[str, bytes] = {}
    user = store_message({"role": "user", "content": SAID}, blobs)
    text = [{"type": "text", "text": ANSWERED}]
    assistant = store_message({"role": "assistant", "content": text}, blobs)
    by = Provenance(origin=session, generator="system")
    wrapper = SessionDocument(
        id=session_object_id(session),
        session_id=session,
        chat_ref=chat_id(session),
        system_prompt_ref=system_prompt_id(session),
        begun_by=user_of_session(session).vouch(session_statement(session)),
        provenance=by,
    )
    chat = ChatDocument(
        id=chat_id(session), session_ref=session_object_id(session), turn_count=1, provenance=by
    )
    turn = TurnDocument(
        id=turn_id(session, 1), session=session, user=user, assistant=assistant, user_turn=1
    )
    store.commit(Batch([wrapper.seal(), chat.seal()], {}))
    store.commit(Batch([turn.seal()], blobs))


def extract(store: Store, session: str) -> None:
    """Read the turn out; does nothing where that was done."""
    memory = ExtractionMemory(store, user_of_session(session), by=session)
    sayings, tools = texts_of_turns(store, session, 1, 1)
    selection = within_bounds(sayings)
    typed = [saying.text for saying in sayings if saying.role == "user"]
    turns = AskedTurns(session, None, 1, 1, tools, selection, typed=typed)
    read_out(memory, turns, ANSWER, "user-stated")


def accept(store: Store, session: str) -> None:
    """Accepts one proposal, the other in place of an entry; idempotent."""
    deciding = UserActs(store, user_of_session(session), by=session)
    stated = [e for e in deciding.all("global") if e.document.learned_from == "user_turn"]
    proposed = [e for e in deciding.all("global") if e.document.learned_from != "user_turn"]
    first, second = sorted(proposed, key=lambda entry: entry.document.fact)
    with suppress(MemoryRefused):  # where the process before has done it
        deciding.accept(first.id)
    with suppress(MemoryRefused):
        deciding.accept_instead(second.id, of=stated[0].id)


def _begin(scene: Scene) -> None:
    with scene.opened(lazy=True) as store:
        begin(store, scene.session)


def _extracted(scene: Scene) -> None:
    with scene.opened(lazy=True) as store:
        begin(store, scene.session)
        extract(store, scene.session)


def _bundle(scene: Scene) -> Path:
    return scene.folder.with_suffix(".jsonl")


def _exported(scene: Scene) -> None:
    text = io.StringIO()
    with (
        tempfile.TemporaryDirectory() as name,
        closing(open_store(Config(home=Path(name)))) as store,
    ):
        begin(store, scene.session)
        extract(store, scene.session)
        accept(store, scene.session)
        export_session(store, scene.session, text.write)
    _bundle(scene).write_text(text.getvalue(), encoding="utf-8")


def _extract(scene: Scene, reach: Reach, _number: int) -> None:
    with scene.opened() as store:
        extract(reporting(store, reach), scene.session)


def _accept(scene: Scene, reach: Reach, _number: int) -> None:
    with scene.opened() as store:
        accept(reporting(store, reach), scene.session)


def _import(scene: Scene, reach: Reach, _number: int) -> None:
    with scene.opened() as store, _bundle(scene).open("rb") as file:
        import_file(reporting(store, reach), file)


def memory_outcome(scene: Scene) -> list[str]:
    """Every entry by its history, and how often it was read out."""
    session = {"session": scene.session}
    with scene.opened(lazy=True) as store:
        entries = [
            (
                *(entry.fields[name] for name in ("place", "state", "fact")),
                *(version.fields["act"] for version in store.history(entry.id)),
            )
            for entry in store.query("memory", session)
        ]
        records = [("record", head.fields["last"]) for head in store.query("extraction", session)]
        turns = [("turn", head.fields["user_turn"]) for head in store.query("turn", session)]
    return sorted(map(repr, [*entries, *records, *turns]))


EXTRACT = Act(_begin, _extract, memory_outcome)
ACCEPT = Act(_extracted, _accept, memory_outcome)
IMPORT = Act(_exported, _import, memory_outcome)
