"""A process that reads out a session, accepts what waits, or imports a bundle, and says at each
commit where it is."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, suppress
from hashlib import sha256
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

from foredeck.config import Config
from foredeck.errors import StoreError
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
from foredeck.store.kind import open_store
from foredeck.store.portable.importing import import_file
from foredeck.store.protocol import Batch, Origin, Store, Token

EXTRACT, ACCEPT, IMPORT = "extract", "accept", "import"
ACTS = (EXTRACT, ACCEPT, IMPORT)

SAID = "Fix the parser. Never use tabs in Python files."
ANSWERED = "Fixed: the tables stay in tables.py, errors are logged as JSON, and it runs on port 80."
ANSWER = """\
preference|turn-1|User avoids tabs.|Never use tabs in Python files
decision|turn-2|Parser tables stay in tables.py.|the tables stay in tables.py
decision|turn-2|Parser errors are logged as JSON.|errors are logged as JSON
fact|turn-2|The parser runs on port 80.|it runs on port 80
identity|turn-1|User is root.|root"""

Settings = Mapping[str, Any]


def user_of_session(session: str) -> User:
    """Each session has a user of its own: what is kept of one is not known to the next."""
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
    shown = within_bounds(sayings)
    typed = [saying.text for saying in sayings if saying.role == "user"]
    turns = AskedTurns(session, None, 1, 1, tools, shown, typed=typed)
    read_out(memory, turns, ANSWER, "user-stated")


def accept(store: Store, session: str) -> None:
    """Accept one proposal, the other in place of the entry that was kept at once; what was done
    already is left."""
    deciding = UserActs(store, user_of_session(session), by=session)
    stated = [e for e in deciding.all("global") if e.document.learned_from == "user_turn"]
    proposed = [e for e in deciding.all("global") if e.document.learned_from != "user_turn"]
    first, second = sorted(proposed, key=lambda entry: entry.document.fact)
    with suppress(MemoryRefused):  # where the process before has done it
        deciding.accept(first.id)
    with suppress(MemoryRefused):
        deciding.accept_instead(second.id, of=stated[0].id)


def work(settings: Settings, act: str, session: str, bundle: Path, pipe: Connection) -> None:
    """Do one act to its end. Each commit is announced, and waits for a word before and after."""
    with closing(open_store(Config(**settings))) as opened:
        store = cast("Store", _Announcing(opened, pipe))
        if act == IMPORT:
            with bundle.open("rb") as file:
                import_file(store, file)
        else:
            {EXTRACT: extract, ACCEPT: accept}[act](store, session)
        pipe.send("done")


class _Announcing:
    """A store that says when it commits."""

    def __init__(self, store: Store, pipe: Connection) -> None:
        self._store = store
        self._pipe = pipe

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, batch: Batch, *, origin: Origin | None = None) -> Token:
        """See `Store.commit`."""
        self._say("committing")
        token = self._committed(batch, origin)
        self._say("committed")
        return token

    def _committed(self, batch: Batch, origin: Origin | None) -> Token:
        try:
            return self._store.commit(batch, origin=origin)
        except StoreError:
            self._say("refused")
            raise

    def _say(self, what: str) -> None:
        self._pipe.send(what)
        self._pipe.recv()
