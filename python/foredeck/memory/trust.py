"""How far anything stored is trusted by this user: as their own word, or as derived.

It follows from provenance alone, for every kind of document. Whatever does not carry their word
(`User.vouch`) is derived: what a model wrote, what was imported or read from old histories, what
others on the same database have said.
"""

from __future__ import annotations

import hmac
import logging
import os
import secrets
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from foredeck.errors import ForedeckError
from foredeck.model.canonical import canonical_json
from foredeck.model.documents import Document, Fields, session_object_id
from foredeck.model.memory import MemoryDocument
from foredeck.model.records import imported_id
from foredeck.regular_files import read_regular
from foredeck.store.protocol import Store

if TYPE_CHECKING:
    from foredeck.config import Config

log = logging.getLogger(__name__)

KEY_FILE = "user.key"
_KEY_BYTES = 32
_ID_LETTERS = 16

Trust = Literal["user-stated", "derived"]


class BadUserKey(ForedeckError):
    """The file with the user's key holds something else."""


@dataclass(frozen=True, slots=True)
class User:
    """Who works with this state folder, with the key that proves what they have said."""

    # Stores are shared, sessions imported, and documents written by anybody: a field that says "by
    # the user" would be as good as whoever wrote it. A code that cannot be made without the key is
    # the user's.
    key: bytes = field(repr=False)

    @property
    def id(self) -> str:
        """Distinguishes users of a shared store: 16 hexadecimal digits that follow from the key,
        and do not give it away."""
        return sha256(b"foredeck user\0" + self.key).hexdigest()[:_ID_LETTERS]

    def vouch(self, statement: Sequence[Any]) -> str:
        """The code that means "this user has said so". `statement`: JSON values."""
        return hmac.new(self.key, canonical_json(list(statement)), sha256).hexdigest()

    def vouches(self, statement: Sequence[Any], code: str | None) -> bool:
        """Whether a code is this user's, for this very statement."""
        # In constant time: how long a comparison takes must not give a code away.
        return isinstance(code, str) and hmac.compare_digest(
            self.vouch(statement).encode(), code.encode(errors="replace")
        )


class TrustOf:
    """Says how far the documents of a store are trusted by one user."""

    def __init__(self, store: Store, user: User) -> None:
        self._store = store
        self._user = user

    def entry(self, document: MemoryDocument) -> Trust:
        """Of an entry of memory."""
        word = self._user.vouches(document.statement(), document.vouched)
        return "user-stated" if word and document.owner == self._user.id else "derived"

    def said_by_user(self, session: str | None) -> Trust:
        """For what a session's chat has as the user's: their word only where the session began at
        this user's side."""
        # What was imported may say anything, also in a session of theirs, and a subagent's user is
        # the agent that started it.
        if session is None or self._store.head(imported_id(session)) is not None:
            return "derived"
        head = self._store.head(session_object_id(session))
        if head is None or head.fields.get("started_by") is not None:
            return "derived"
        code = head.fields.get("begun_by")
        return "user-stated" if self._user.vouches(session_statement(session), code) else "derived"

    def document(self, id: str, *, users_part: bool = False) -> Trust:
        """Of any document. `users_part`: of a turn, what the user said in it."""
        head = self._store.head(id)
        if head is None:
            return "derived"
        return self.fields(head.fields, users_part=users_part)

    def fields(self, fields: Fields, *, users_part: bool = False) -> Trust:
        """As `document`, of one that has been read."""
        match fields.get("type"):
            case "memory":
                return self.entry(MemoryDocument.model_validate(dict(fields)))
            case "turn" if users_part:
                return self.said_by_user(fields.get("session"))
        return "derived"


def user_of(config: Config) -> User | None:
    """Who works here; None where their key cannot be read, and nothing counts as said by them."""
    try:
        return load_user(config.home)
    except (OSError, ForedeckError) as error:
        log.warning("the user's key: %s", error)
        return None


def load_user(home: Path) -> User:
    """The user of a state folder, which must be there; their key is made at the first time.

    Raises `BadUserKey` for a damaged file, `OSError` where it cannot be read or made.
    """
    path = home / KEY_FILE
    try:
        text = read_regular(path).decode("ascii")
    except FileNotFoundError:
        _make(path)
        text = read_regular(path).decode("ascii")
    except UnicodeDecodeError:
        text = ""
    try:
        key = bytes.fromhex(text.strip())
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise BadUserKey(
            f"{path} is damaged. Bring it back from a backup; without it, or with a new one in its "
            "place, nothing that is stored counts as said by you."
        )
    return User(key)


def lowest(trusts: Iterable[Trust]) -> Trust:
    """What rests on several things is trusted as the least of them; on nothing, not at all."""
    found = set(trusts)
    return "user-stated" if found == {"user-stated"} else "derived"


def session_statement(session: str) -> list[Any]:
    """What an engine vouches for when it begins a session at this user's side."""
    return ["session", session]


def renewed_word(user: User) -> Callable[[Document, Document], None]:
    """For what is imported under fresh ids: an entry that carried this user's word, unchanged,
    carries it under its new id. No other entry comes to carry it."""

    def renew(before: Document, now: Document) -> None:
        if isinstance(before, MemoryDocument) and isinstance(now, MemoryDocument):
            held = user.vouches(before.statement(), before.vouched) and before.owner == user.id
            now.vouched = user.vouch(now.statement()) if held else None

    return renew


def _make(path: Path) -> None:
    """Make a new key, or leave that of whoever was first."""
    # Written aside and linked, so that the file is whole from its first moment on. A link fails
    # where the file is there, a rename would replace the other process's key.
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_hex(_KEY_BYTES).encode() + b"\n")
            # On the disk before it has its name: a crash must not leave an empty key, by which
            # nothing that is stored would count as the user's.
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            return
    finally:
        Path(draft).unlink(missing_ok=True)
