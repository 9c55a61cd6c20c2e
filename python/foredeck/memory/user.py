"""This user: a key in the state folder, that proves what they have said.

Stores are shared, sessions imported, and documents written by anybody. A field that says "by the
user" would be as good as whoever wrote it. So what this user has said carries a code that cannot
be made without the key, and what does not carry it counts as no user's word.
"""

from __future__ import annotations

import hmac
import logging
import os
import secrets
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foredeck.errors import ForedeckError
from foredeck.model.canonical import canonical_json
from foredeck.regular_files import read_regular

if TYPE_CHECKING:
    from foredeck.config import Config

log = logging.getLogger(__name__)

KEY_FILE = "user.key"
_KEY_BYTES = 32
_ID_LETTERS = 16


class BadUserKey(ForedeckError):
    """The file with the user's key holds something else."""


@dataclass(frozen=True, slots=True)
class User:
    """Who works with this state folder. `id` distinguishes users of a shared store."""

    key: bytes = field(repr=False)

    @property
    def id(self) -> str:
        """16 hexadecimal digits that follow from the key, and do not give it away."""
        return sha256(b"foredeck user\0" + self.key).hexdigest()[:_ID_LETTERS]

    def vouch(self, statement: Sequence[Any]) -> str:
        """The code that means "this user has said so". `statement`: JSON values."""
        return hmac.new(self.key, canonical_json(list(statement)), sha256).hexdigest()

    def vouches(self, statement: Sequence[Any], code: str | None) -> bool:
        """Whether a code is this user's, for this very statement."""
        return isinstance(code, str) and hmac.compare_digest(
            self.vouch(statement).encode(), code.encode(errors="replace")
        )


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


def _make(path: Path) -> None:
    """A new key, whole from its first moment on. Whoever is second takes the key of the first."""
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_hex(_KEY_BYTES).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            return
    finally:
        Path(draft).unlink(missing_ok=True)
