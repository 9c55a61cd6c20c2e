"""One recorded session on a real engine in this process, call by call."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from foredeck.accounting.prices import load_cost, load_prices
from foredeck.context.messages.shape import Message
from foredeck.engine.engine import Engine
from foredeck.engine.facility import (
    Facilities,
    FacilityInputs,
    MakeFacilities,
    configured_facilities,
)
from foredeck.histories.transcripts import RecordedCall, Transcript
from foredeck.hosts.protocol import AssembleParams
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.model.call_values import CHARS_PER_TOKEN, Decision
from foredeck.model.own_tools import definition_chars
from foredeck.replay.observing import ReplayObserver
from foredeck.replay.options import ReplayOptions
from foredeck.sources.filesystem import FilesystemMap
from foredeck.sources.recorded import RecordedSource
from foredeck.sources.snapshots import FileSource
from foredeck.store.kind import store_kind
from foredeck.store.protocol import Store

REPLAY_FILESYSTEM = "replay"


class ReplayedSession:
    """Asks an engine for every recorded call what the model would have seen.

    The engine is started at the first call, on the store in `home`.
    """

    def __init__(
        self,
        home: Path,
        transcript: Transcript,
        options: ReplayOptions,
        *,
        head_tokens: float = 0.0,
        facilities: MakeFacilities = configured_facilities,
    ) -> None:
        """`head_tokens`: how many came before the recorded messages; 0 if that is not known."""
        self.engine: Engine | None = None
        self.marker = ""
        """The tool call whose result carries one more cache marker in the newest prompt; empty
        for none."""
        self._home = home
        self._transcript = transcript
        self._options = options
        self._facilities = facilities
        self._cost = load_cost(options.prices)
        self._host = SimulatedHost(transcript.id)
        if head_tokens:
            chars = int(head_tokens * CHARS_PER_TOKEN) + definition_chars(*options.tools)
            self._host.system = [{"role": "system", "content": "." * chars}]
        self.observer: ReplayObserver | None = None
        """What observes the session; None where nothing does."""
        if options.config(home).observations != "off":
            self.observer = ReplayObserver(load_prices(options.prices), options.observes)

    def call(self, call: RecordedCall) -> tuple[list[Message], Decision]:
        """One recorded call: the messages that would have gone out, and what was decided."""
        engine = self.engine or self._start()
        host = self._host
        new = self._transcript.messages[len(host.messages) : call.seen]
        host.add(*(r.message for r in new), entries=[r.entry for r in new])
        host.model = self._model(call)
        answer = engine.assemble(_without_usage(host.request(call.time_ms)))
        host.accept(answer)
        self.marker = answer["marker"] or ""
        decision = engine.decision
        if self.observer is not None and engine.opened is not None:
            self.observer.after_call(engine.opened.session)
        return host.prompt(), decision

    def restart(self) -> None:
        """Close the engine; the next call starts another on the same store."""
        self.close()
        self._host.replace_engine()

    def close(self) -> None:
        """Close the engine, if one runs."""
        if self.engine is not None:
            self.engine.close()
            self.engine = None

    def _observed(self, opening: FacilityInputs) -> Facilities:
        """The session's facilities, with what this replay's own observer notes."""
        made = self._facilities(opening)
        return replace(made, features=replace(made.features, stand_ins=self.observer))

    def _model(self, call: RecordedCall) -> dict[str, Any]:
        return {
            "provider": call.provider,
            "id": call.model,
            "api": call.api,
            "contextWindow": self._options.window,
            "cost": self._cost,
            "promptCache": {"short": self._options.ttl_s},
        }

    def _start(self) -> Engine:
        config = self._options.config(self._home)
        # With no local copy in front of it, so that a replay shows what a database gives back.
        store = store_kind(config.store).open_whole(config)
        self.engine = Engine(
            config, recorded=recorded_source, store=store, facilities=self._observed
        )
        self.engine.open_session(self._host.opening(self._transcript.cwd or "/"))
        return self.engine


def _without_usage(request: AssembleParams) -> AssembleParams:
    """The provider's figures are of the prompts that were sent at the time, not of ours."""
    messages = [{k: v for k, v in m.items() if k != "usage"} for m in request.messages]
    return request.model_copy(update={"messages": messages})


def recorded_source(store: Store, cwd: str) -> FileSource:
    """Files as the recorded results show them; nothing of this machine's is read."""
    return RecordedSource(store, FilesystemMap(REPLAY_FILESYSTEM, [], cwd=cwd))
