"""Stored observations and reflections, as what may replace chat."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from foredeck.context.state.stand_ins import StandIn
from foredeck.model.observations import Mode
from foredeck.observations.recall import (
    Observation,
    Reflection,
    observations_of,
    reflections_of,
)
from foredeck.observations.timing import TimingRules, is_activation_due
from foredeck.store.protocol import Store


class ObservedStandIns:
    """See `StandIns`. What is stored is read once; whoever stores more says so (`refresh`)."""

    def __init__(
        self,
        store: Store,
        sessions: Sequence[str],
        rules: TimingRules,
        mode: Callable[[], Mode] = lambda: "default",
    ) -> None:
        """`sessions`: the session's own id, then those that it was forked from. `mode`: what kind
        of work is done, which decides how long chat stays as it is."""
        self._store = store
        self._sessions = sessions
        self._rules = rules
        self._mode = mode
        self._known: Sequence[StandIn] | None = None

    def refresh(self) -> None:
        """Something was stored, edited or deleted."""
        self._known = None

    def known(self) -> Sequence[StandIn]:
        """All of them, oldest first."""
        if self._known is None:
            observations = observations_of(self._store, self._sessions)
            reflections = reflections_of(self._store, self._sessions)
            self._known = [
                *_of_observations(observations),
                *_of_reflections(observations, reflections),
            ]
        return self._known

    def is_due(self, chat_tokens: int, standing_tokens: int) -> bool:
        """By the threshold of the mode."""
        return is_activation_due(
            self._rules,
            self._mode(),
            message_tokens=chat_tokens,
            observation_tokens=standing_tokens,
            fits=True,
        )


def _of_observations(observations: Sequence[Observation]) -> Iterator[StandIn]:
    """A message that was observed in parts is covered by the last of them, and what was noted of
    the others comes before it."""
    by_id = {each.id: each for each in observations}
    for each in observations:
        if each.is_deleted or not each.covers:
            continue
        texts = [*_parts_before(each, by_id), each.text]
        yield StandIn(
            each.id,
            "observation",
            tuple(each.covers),
            "\n".join(texts),
            each.task,
            each.suggestion,
        )


def _parts_before(observation: Observation, by_id: dict[str, Observation]) -> list[str]:
    """What was noted of the parts of a long message that come before the last one, in order."""
    part, texts = observation.part, list[str]()
    before = by_id.get(str(observation.fields.get("previous") or ""))
    while part is not None and part.start and before is not None:
        part = before.part
        texts.insert(0, before.text)
        before = by_id.get(str(before.fields.get("previous") or ""))
    return [text for text in texts if text]


def _of_reflections(
    observations: Sequence[Observation], reflections: Sequence[Reflection]
) -> Iterator[StandIn]:
    by_id = {each.id: each for each in observations}
    for each in reflections:
        behind = [by_id[id] for id in each.observations if id in by_id]
        if each.is_deleted or len(behind) < len(each.observations):
            continue
        covers = tuple(address for observation in behind for address in observation.covers)
        yield StandIn(each.id, "reflection", covers, each.text, each.task, each.suggestion)
