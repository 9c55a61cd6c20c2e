"""The documents of what was written: all that is known of it beside its text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from foredeck.model.documents import Provenance, chat_id
from foredeck.model.observations import (
    Level,
    ObservationDocument,
    ObservedBy,
    Priority,
    ReflectionDocument,
    Remark,
    observation_id,
    reflection_id,
)
from foredeck.observations.chunks import Chunk
from foredeck.observations.modes import ModeChoice
from foredeck.observations.names import dropped
from foredeck.observations.observers import Written
from foredeck.observations.reading import Observation, Reflection

_PRIORITIES: tuple[Priority, ...] = ("high", "medium", "low")
_MOST_DROPPED = 400


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Whose it is and when it was made. `previous`: id of the one before it on its branch."""

    session: str
    project: str | None
    operation: str
    time_ms: int
    previous: str | None = None


def observation_document(
    written: Written, chunk: Chunk, mode: ModeChoice, about: Circumstances
) -> ObservationDocument:
    """Of an observation; not sealed yet."""
    times = [message.time_ms for message in chunk.messages if message.time_ms]
    turns = [message.turn for message in chunk.messages if message.turn]
    return ObservationDocument(
        id=observation_id(about.session, chunk.covers, chunk.part, about.previous),
        provenance=_provenance(written.by, about.session, [chat_id(about.session)]),
        session=about.session,
        project=about.project,
        previous=about.previous,
        covers=chunk.covers,
        part=chunk.part,
        first_turn=min(turns, default=0),
        last_turn=max(turns, default=0),
        mode=mode.mode,
        mode_by=mode.by,
        content=written.text,
        current_task=written.current_task,
        suggestion=written.suggestion,
        covered_tokens=chunk.tokens,
        tokens=written.tokens,
        observed_by=written.by,
        model=written.model,
        left_out=written.left_out,
        operation=about.operation,
        from_ms=min(times, default=0),
        to_ms=max(times, default=0),
        time_ms=about.time_ms,
        **fields_of(written.remarks),
    )


def fields_of(remarks: Sequence[Remark]) -> dict[str, object]:
    """The fields of an observation that follow from its remarks."""
    present = {remark.priority for remark in remarks}
    categories = Counter(remark.category for remark in remarks)
    specific: dict[str, list[str]] = {}
    for remark in remarks:
        for name, texts in remark.mode_specific.items():
            specific.setdefault(name, []).extend(texts)
    return {
        "remarks": list(remarks),
        "remark_count": len(remarks),
        "priority": next((p for p in _PRIORITIES if p in present), "low"),
        "category": categories.most_common(1)[0][0] if categories else "",
        "files": list(dict.fromkeys(file for remark in remarks for file in remark.files)),
        "line_numbers": list(dict.fromkeys(n for remark in remarks for n in remark.line_numbers)),
        "mode_specific": specific,
    }


def reflection_document(
    written: Written,
    replaced: Sequence[Observation | Reflection],
    newest: Reflection | None,
    about: Circumstances,
) -> ReflectionDocument:
    """Of a reflection that replaces these; not sealed yet. `newest`: the reflection that was made
    last on this branch."""
    replaces = [one.id for one in replaced]
    level: Level = "summary" if any(one.is_condensed for one in replaced) else "reflection"
    return ReflectionDocument(
        id=reflection_id(about.session, replaces),
        provenance=_provenance(written.by, about.session, replaces),
        session=about.session,
        project=about.project,
        level=level,
        generation=1 if newest is None else newest.generation + 1,
        previous=None if newest is None else newest.id,
        replaces=replaces,
        observations=list(dict.fromkeys(_behind(replaced))),
        content=written.text,
        remarks=written.remarks,
        current_task=written.current_task,
        suggestion=written.suggestion,
        dropped=dropped((one.text for one in replaced), written.text)[:_MOST_DROPPED],
        compression=written.compression,
        input_tokens=sum(one.tokens for one in replaced),
        tokens=written.tokens,
        observed_by=written.by,
        model=written.model,
        left_out=written.left_out,
        operation=about.operation,
        time_ms=about.time_ms,
    )


def _behind(replaced: Iterable[Observation | Reflection]) -> Iterable[str]:
    for one in replaced:
        yield from one.document.observations if isinstance(one, Reflection) else [one.id]


def _provenance(by: ObservedBy, session: str, parents: list[str]) -> Provenance:
    generator = "agent" if by == "model" else "system"
    return Provenance(origin=session, generator=generator, parent_refs=parents)
