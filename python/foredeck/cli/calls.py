"""From a time or a hash to one call of a session."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from foredeck.cli.moments import EXAMPLES, parse_moment
from foredeck.errors import NotFound
from foredeck.lookup.texts import counted, when
from foredeck.model.calls import CallRecord
from foredeck.store.protocol import Store
from foredeck.timeline.branches import records_of

_HASH = re.compile(r"[0-9a-f]{8,64}")


def call_at(store: Store, session: str, text: str) -> int:
    """The number of the last call by a time, or of the first call with a hash in its prompt.

    The hash is that of a text (`text_hash` of a version) or of a whole message, or its beginning.
    Raises `NotFound`, with what there is, where no call fits.
    """
    records = records_of(store, session)
    if _HASH.fullmatch(text):
        return _with_hash(session, records, text)
    time_ms = parse_moment(text)
    if time_ms is None:
        raise NotFound(
            f"{text!r} is neither a time ({EXAMPLES}) nor the start of a hash (8 digits or more)."
        )
    by_then = [record for record in records if record.time_ms <= time_ms]
    if not by_then:
        raise NotFound(
            f"session {session} had made no call yet at {when(time_ms)}; it has {_span(records)}."
        )
    return by_then[-1].ordinal


def _with_hash(session: str, records: Sequence[CallRecord], text: str) -> int:
    for record in records:
        if any(hash.startswith(text) for hash in _hashes(record)):
            return record.ordinal
    raise NotFound(
        f"no call of session {session} had a text or message whose hash begins {text}: "
        f"`foredeck history OBJECT --json` shows those of an object. It has {_span(records)}."
    )


def _hashes(record: CallRecord) -> Iterator[str]:
    """Hashes of the messages and texts that came into the prompt with a call."""
    yield from record.addresses
    yield from (row.text_hash for row in record.parts if row.text_hash is not None)


def _span(records: Sequence[CallRecord]) -> str:
    first, last = (when(records[end].time_ms) for end in (0, -1))
    return f"{counted(len(records), 'call')}, from {first} to {last}"
