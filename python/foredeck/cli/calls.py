"""From a time or a hash to one call of a session."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from foredeck.cli.moments import EXAMPLES, parse_moment
from foredeck.cli.output import counted, when
from foredeck.cli.stored import NotFound
from foredeck.store.protocol import Head, Store

_HASH = re.compile(r"[0-9a-f]{8,64}")


def call_at(store: Store, session: str, text: str) -> int:
    """The number of the last call by a time, or of the first call with a hash in its prompt.

    The hash is that of a text (`text_hash` of a version) or of a whole message, or its beginning.
    Raises `NotFound`, with what there is, where no call fits.
    """
    records = sorted(store.query("call", {"session": session}), key=_number)
    if _HASH.fullmatch(text):
        return _with_hash(session, records, text)
    time_ms = parse_moment(text)
    if time_ms is None:
        raise NotFound(
            f"{text!r} is neither a time ({EXAMPLES}) nor the start of a hash (8 digits or more)."
        )
    by_then = [record for record in records if record.fields["time_ms"] <= time_ms]
    if not by_then:
        raise NotFound(
            f"session {session} had made no call yet at {when(time_ms)}; it has {_span(records)}."
        )
    return _number(by_then[-1])


def _with_hash(session: str, records: Sequence[Head], text: str) -> int:
    for record in records:
        if any(hash.startswith(text) for hash in _hashes(record)):
            return _number(record)
    raise NotFound(
        f"no call of session {session} had a text or message whose hash begins {text}: "
        f"`foredeck history OBJECT --json` shows those of an object. It has {_span(records)}."
    )


def _hashes(record: Head) -> Iterator[str]:
    """Hashes of the messages and texts that came into the prompt with a call."""
    for _entry, address in record.fields["keys"]:
        yield address
    for _index, _form, _blocks, _subject, _version, _base, text_hash, *_ in record.fields["parts"]:
        if text_hash is not None:
            yield text_hash


def _span(records: Sequence[Head]) -> str:
    first, last = (when(records[end].fields["time_ms"]) for end in (0, -1))
    return f"{counted(len(records), 'call')}, from {first} to {last}"


def _number(record: Head) -> int:
    return int(record.fields["ordinal"])
