"""How far a user trusts anything stored: as their word, or as derived.

By provenance alone: models', imported and others' is derived.
"""

from __future__ import annotations

import hmac
import logging
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from foredeck.errors import ForedeckError
from foredeck.model.documents import Document, Fields, session_object_id
from foredeck.model.identity import canonical_json
from foredeck.model.memory import MemoryDocument
from foredeck.model.records import imported_id
from foredeck.regular_files import read_regular
from foredeck.store.location import make_once
from foredeck.store.store import Store

if TYPE_CHECKING:
    from foredeck.config import Config

log = logging.getLogger(__name__)

KEY_FILE = "user.key"
_KEY_BYTES = 32
_ID_LETTERS = 16

Trust = Literal["user-stated", "derived"]


class BadUserKey(ForedeckError):
    """The user's key file is damaged."""


@dataclass(frozen=True, slots=True)
class User:
    """The user of this state folder, with the key that proves their words."""

    # Stores are shared, sessions imported, and documents written by anybody: a field that says "by
    # the user" would be as good as whoever wrote it. A code that cannot be made without the key is
    # the user's.
    key: bytes = field(repr=False)

    @property
    def id(self) -> str:
        return sha256(b"foredeck user\0" + self.key).hexdigest()[:_ID_LETTERS]

    def vouch(self, statement: Sequence[Any]) -> str:
        """The code for "this user has said so"."""
        return hmac.new(self.key, canonical_json(list(statement)), sha256).hexdigest()

    def vouches(self, statement: Sequence[Any], code: str | None) -> bool:
        # In constant time: how long a comparison takes must not give a code away.
        return isinstance(code, str) and hmac.compare_digest(
            self.vouch(statement).encode(), code.encode(errors="replace")
        )

    def has_said(self, entry: MemoryDocument) -> bool:
        """Whether an entry is this user's word."""
        return entry.owner == self.id and self.vouches(entry.statement(), entry.vouched)

    def renew(self, before: Document, now: Document) -> None:
        """Keeps this user's word on an entry that is rewritten."""
        if not (isinstance(before, MemoryDocument) and isinstance(now, MemoryDocument)):
            return
        # The code of another's stays: it says nothing, until the entry is back where they are.
        if self.has_said(before):
            now.vouched = self.vouch(now.statement())


class TrustOf:
    """One user's trust in a store's documents."""

    def __init__(self, store: Store, user: User) -> None:
        self._store = store
        self._user = user

    def entry(self, document: MemoryDocument) -> Trust:
        return "user-stated" if self._user.has_said(document) else "derived"

    def said_by_user(self, session: str | None) -> Trust:
        """Trust in a session chat's user text, by where the session began."""
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
        """Trust in any document; `users_part`: in a turn's user text."""
        head = self._store.head(id)
        if head is None:
            return "derived"
        return self.fields(head.fields, users_part=users_part)

    def fields(self, fields: Fields, *, users_part: bool = False) -> Trust:
        """As `document`, given fields."""
        match fields.get("type"):
            case "memory":
                return self.entry(MemoryDocument.model_validate(dict(fields)))
            case "turn" if users_part:
                return self.said_by_user(fields.get("session"))
        return "derived"


def user_of(config: Config) -> User | None:
    """The current user; None if the key is unreadable."""
    try:
        return load_user(config.home)
    except (OSError, ForedeckError) as error:
        log.warning("the user's key: %s", error)
        return None


def load_user(home: Path) -> User:
    """Makes the key the first time. Raises `BadUserKey`, or `OSError`."""
    path = home / KEY_FILE
    try:
        text = read_regular(path).decode("ascii")
    except FileNotFoundError:
        make_once(path, secrets.token_hex(_KEY_BYTES).encode() + b"\n")
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
    """The least trust; derived for nothing."""
    kinds = set(trusts)
    return "user-stated" if kinds == {"user-stated"} else "derived"


def session_statement(session: str) -> list[Any]:
    """What an engine vouches for when a session begins at the user's side."""
    return ["session", session]
