"""From what a user types to an object, and to one version of it.

A version goes by its number in the object's own history, a session's name for it (`v2`), a store
token, the start of one of its hashes, or a time: the newest version that was there by then.
"""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Sequence

from foredeck.cli.arguments import EXAMPLES, parse_moment
from foredeck.context.state.index import verify, versions_seen
from foredeck.errors import NotFound
from foredeck.lookup.versions import Version, number_of, numbered
from foredeck.model.figures import when
from foredeck.model.places import AskedPart
from foredeck.names import Found, find_object, find_part, find_session
from foredeck.sources.snapshots import version_ms
from foredeck.store.protocol import Head, Store, Token

SHOWN = 6
_HASHES = ("content_hash", "text_hash", "source_hash")
_HASH = re.compile(r"[0-9a-f]{8,64}")


def find_asked(store: Store, args: Namespace) -> Found:
    """The object that the arguments of `common.add_object` name. Raises `NotFound`."""
    session = None if args.session is None else find_session(store, args.session)
    return find_object(store, args.object, session)


def find_asked_part(store: Store, args: Namespace) -> tuple[Found, AskedPart]:
    """The same, with what of the object is asked for behind its name. Raises `NotFound`."""
    session = None if args.session is None else find_session(store, args.session)
    return find_part(store, " ".join(args.object), session)


def find_version(store: Store, found: Found, text: str | None) -> Version:
    """The version that `text` names; None is the newest. Of several with one hash the newest.

    Raises `NotFound` where the object has no such version, `Corrupt` where the one that a session
    saw is not what is stored.
    """
    history = store.history(found.id)
    if text is None:
        return Version(len(history), history[-1])
    # Eight digits may be a number, or the start of a hash without a letter.
    if text.isascii() and text.isdecimal() and not _with_hash(history, text):
        return Version(int(text), numbered(found, history, int(text)))
    if re.fullmatch(r"v\d+", text):
        return _session_version(store, found, history, int(text[1:]))
    if store.transactions([Token(text)]):
        return _as_of(store, found, history, Token(text))
    same = _with_hash(history, text)
    return same[-1] if same else _by_time(found, history, text)


def has_hash(head: Head, text: str) -> bool:
    """Whether one of a version's hashes begins with `text`: 8 hexadecimal digits or more."""
    if not _HASH.fullmatch(text):
        return False
    return any(str(head.fields.get(name) or "").startswith(text) for name in _HASHES)


def session_versions(store: Store, found: Found) -> dict[Token, int]:
    """What the session calls the object's versions: number behind the `v`, by token."""
    if found.session is None or found.ordinal is None:
        return {}
    named: dict[Token, int] = {}
    for pin in versions_seen(store, found.session, found.ordinal):
        head = store.head(found.id, Token(pin.token))
        if head is not None:
            named.setdefault(head.token, pin.version)
    return named


def _with_hash(history: Sequence[Head], text: str) -> list[Version]:
    numbered = enumerate(history, start=1)
    return [Version(number, head) for number, head in numbered if has_hash(head, text)]


def _by_time(found: Found, history: Sequence[Head], text: str) -> Version:
    time_ms = parse_moment(text)
    if time_ms is None:
        raise NotFound(_no_version(found, history, text))
    number = sum(1 for head in history if version_ms(head) <= time_ms)
    if number == 0:
        raise NotFound(
            f"{found.name} had no version yet at {when(time_ms)}. It has {_listed(history)}."
        )
    return Version(number, history[number - 1])


def _no_version(found: Found, history: Sequence[Head], text: str) -> str:
    if _HASH.fullmatch(text):
        return (
            f"no version of {found.name} has a hash that begins {text}: it has {_listed(history)}."
        )
    return (
        f"{text!r} is no version: give a number from 1 to {len(history)}, a session's version such "
        f"as v2, a token, the start of a hash, or a time ({EXAMPLES}). {found.name} has "
        f"{_listed(history)}."
    )


def _listed(history: Sequence[Head]) -> str:
    """The newest versions, each with its time and hash."""
    numbered = list(enumerate(history, start=1))
    shown = ", ".join(
        f"{number} ({when(version_ms(head))}, {head.fields['content_hash'][:8]})"
        for number, head in numbered[-SHOWN:]
    )
    more = len(numbered) - SHOWN
    return f"version{'s' * (len(numbered) > 1)} {shown}" + (f" and {more} older" * (more > 0))


def _session_version(store: Store, found: Found, history: Sequence[Head], wanted: int) -> Version:
    if found.session is None or found.ordinal is None:
        raise NotFound(
            f"v{wanted} is a version as a session counts them: give --session, or "
            f"a number from 1 to {len(history)} of the object's own history."
        )
    seen = []
    for pin in versions_seen(store, found.session, found.ordinal):
        seen.append(pin.version)
        if pin.version == wanted:
            version = _as_of(store, found, history, Token(pin.token))
            fields = version.head.fields
            verify(pin, fields["content_hash"], fields["text_hash"])
            return version
    raise NotFound(
        f"@{found.ordinal} has no v{wanted}: session {found.session} has seen "
        + ", ".join(f"v{number}" for number in sorted(seen))
        + "."
    )


def _as_of(store: Store, found: Found, history: Sequence[Head], token: Token) -> Version:
    head = store.head(found.id, token)
    if head is None:
        raise NotFound(f"{found.name} did not exist yet at {token}.")
    return Version(number_of(history, head), head)
