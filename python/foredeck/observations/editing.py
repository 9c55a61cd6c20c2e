"""What a user changes in observations and reflections: their text, or that they are there."""

from __future__ import annotations

from collections.abc import Sequence

from foredeck.errors import Conflict, ForedeckError
from foredeck.model.documents import Provenance
from foredeck.model.observations import NotedDocument, ObservationDocument, Remark
from foredeck.observations.excerpt import WallTime
from foredeck.observations.keeping import fields_of
from foredeck.observations.modes import ALL_FIELDS
from foredeck.observations.reading import note_named, stored_notes
from foredeck.observations.texts import Malformed, TextRules, remarks_in, text_of, zone_of
from foredeck.store.protocol import Batch, Store, Token


class EditRefused(ForedeckError):
    """An observation cannot be changed so; says why."""

    exit_code = 2


class NoObservation(ForedeckError):
    """There is no such observation or reflection."""

    exit_code = 4


def edit(
    store: Store, id: str, text: str, who: str, clock: WallTime | None = None
) -> NotedDocument:
    """Store the user's own text of an observation or reflection.

    The text has the form that is printed: dates, and a line for each remark. Raises `EditRefused`
    for any other text, or where it was changed at the same time; `NoObservation`.
    """
    document, token = _found(store, id)
    # In the zone in which it is printed: what is edited keeps its times.
    own = clock or WallTime()
    if document.remarks:
        own = zone_of(document.remarks[0], own)
    rules = TextRules(own, ALL_FIELDS, _first_ms(document))
    try:
        remarks = remarks_in(text, rules)
    except Malformed as error:
        raise EditRefused(f"{error} Write it as it was printed.") from None
    document.content = text_of(remarks, rules.clock)
    document.tokens = _scaled(document, len(document.content))
    document.is_edited = True
    _set_remarks(document, remarks)
    return _put(store, document, token, who)


def delete(store: Store, id: str, who: str) -> NotedDocument:
    """Make an observation or reflection empty.

    What a reflection had replaced counts again. Earlier versions stay in the history. Raises
    `NoObservation`, and `EditRefused` where it was changed at the same time.
    """
    document, token = _found(store, id)
    # Its messages still count as observed, so what the user has taken out is not written again.
    document.content, document.tokens = None, 0
    document.current_task = document.suggestion = ""
    _set_remarks(document, [])
    return _put(store, document, token, who)


def made_from(store: Store, id: str) -> list[str]:
    """Ids of the reflections that still say what an observation or a reflection said."""
    session = _found(store, id)[0].session
    return [
        one.id
        for one in stored_notes(store, [session]).reflections
        if id in (*one.document.replaces, *one.document.observations) and not one.is_deleted
    ]


def _found(store: Store, id: str) -> tuple[NotedDocument, Token]:
    found = note_named(store, id)
    if found is None:
        raise NoObservation(f"There is no observation or reflection {id!r}.")
    return found.document.model_copy(deep=True), found.token


def _put(store: Store, document: NotedDocument, token: Token, who: str) -> NotedDocument:
    parents = document.provenance.parent_refs
    document.provenance = Provenance(origin=who, generator="human", parent_refs=parents)
    try:
        store.commit(Batch(puts=[document.seal()], expect={document.id: token}))
    except Conflict:
        raise EditRefused("It was changed at the same time: look at it again.") from None
    return document


def _set_remarks(document: NotedDocument, remarks: Sequence[Remark]) -> None:
    if isinstance(document, ObservationDocument):
        for name, value in fields_of(remarks).items():
            setattr(document, name, value)
    else:
        document.remarks = list(remarks)


def _first_ms(document: NotedDocument) -> int:
    if document.remarks:
        return document.remarks[0].time_ms
    return document.from_ms if isinstance(document, ObservationDocument) else document.time_ms


def _scaled(document: NotedDocument, chars: int) -> int:
    """Tokens by what the text before took for each character."""
    before = sum(len(remark.content) + 24 for remark in document.remarks)
    return max(1, document.tokens * chars // before) if before else chars // 4
