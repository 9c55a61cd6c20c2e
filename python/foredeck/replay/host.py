"""The host's part in a replay: it asks an engine call by call, as Pi and the shim do."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from foredeck.accounting.judge import Rule
from foredeck.accounting.prices import load_cost, load_prices
from foredeck.config import Config, load_config
from foredeck.context.cache.rebase import DEFAULT_TTL_S
from foredeck.engine.engine import Engine
from foredeck.hosts.pi.edits import apply_edits
from foredeck.hosts.pi.transcripts import Message, RecordedCall, Transcript
from foredeck.hosts.protocol import AssembleParams, AssembleResult, SessionOpenParams
from foredeck.sources import FileSource, FilesystemMap, RecordedSource
from foredeck.store.protocol import Store
from foredeck.store.registry import store_kind

REPLAY_FILESYSTEM = "replay"


@dataclass(frozen=True, slots=True)
class Options:
    """How to replay."""

    store: Literal["sqlite", "xtdb"] = "sqlite"
    layout: str = "anchored"
    policy: str = "adaptive"
    restart_every: int | None = None
    prompts: Path | None = None
    window: int | None = 200_000
    """Context window of the recorded models, in tokens."""
    settings: tuple[str, ...] = ()
    """Further configuration as `KEY=VALUE`; nothing else is read, so that figures compare."""

    ttl_s: float = DEFAULT_TTL_S
    """After how many seconds the provider's cache is taken to have expired."""
    cache: str = "ideal"
    """By which cache the judge charges, and the engine plans."""
    prices: str = "anthropic"
    """Profile, or file, of prices."""
    name: str = ""
    """What the row of the table is called; the layout and policy if empty."""

    @property
    def label(self) -> str:
        """The name of the row."""
        return self.name or f"{self.layout}, {self.policy}"

    def rule(self) -> Rule:
        """How the judge charges. Raises `PriceError`."""
        return Rule(self.cache, self.ttl_s, load_prices(self.prices))

    def config(self, home: Path) -> Config:
        """The configuration of an engine on the store in `home`. Raises `ConfigError`."""
        cache = "markers" if self.cache == "anthropic" else "prefix"
        own = (f"layout={self.layout}", f"policy={self.policy}", f"rebase.cache={cache}")
        flags = (*own, *self.settings, f"home={home}")
        return load_config(flags=flags, environ={}, user_file=Path(os.devnull)).config


class Host:
    """Stands in for Pi and the shim: holds the list, applies answers, restarts the engine."""

    def __init__(self, home: Path, transcript: Transcript, options: Options) -> None:
        self._home = home
        self._transcript = transcript
        self._options = options
        self._cost = load_cost(options.prices)
        self.engine: Engine | None = None
        self._applied: int | None = None
        self._held = 0
        self._edits: dict[int, list[Any]] = {}
        self._inserts: dict[int, list[Message]] = {}
        self._drops: set[int] = set()
        self.marker = ""
        """Where one more cache marker stands in the newest prompt: on the result of this call."""
        self._made: dict[int, tuple[list[Any], Message]] = {}

    def call(self, call: RecordedCall) -> tuple[list[Message], Mapping[str, Any]]:
        """One recorded call: the messages that would have gone out, and what was decided."""
        engine = self.engine or self._start()
        recorded = self._transcript.messages
        params = AssembleParams.model_validate(
            {
                "session": self._transcript.id,
                "keep": self._held,
                "messages": [_unreported(r.message) for r in recorded[self._held : call.seen]],
                "entries": [r.entry for r in recorded[self._held : call.seen]],
                "model": {
                    "provider": call.provider,
                    "id": call.model,
                    "api": call.api,
                    "contextWindow": self._options.window,
                    "cost": self._cost,
                    "promptCache": {"short": self._options.ttl_s},
                },
                "time_ms": call.time_ms,
                "outcomes": self._outcomes(),
            }
        )
        answer = engine.assemble(params)
        self._merge(answer)
        self._held, self._applied = call.seen, answer["call"]
        self.marker = answer["marker"] or ""
        messages = [self._edited(i, r.message) for i, r in enumerate(recorded[: call.seen])]
        return apply_edits(messages, {}, self._inserts, self._drops), engine.decision

    def _edited(self, index: int, message: Message) -> Message:
        """The message as it goes out: the same object at each call, until its edit changes."""
        recipe = self._edits.get(index)
        if recipe is None:
            return message
        made = self._made.get(index)
        if made is None or made[0] is not recipe:
            made = (recipe, apply_edits([message], {0: recipe}, {}, set())[0])
            self._made[index] = made
        return made[1]

    def restart(self) -> None:
        """Close the engine; the next call starts another on the same store."""
        self.close()
        self._held = 0

    def close(self) -> None:
        """Close the engine, if one runs."""
        if self.engine is not None:
            self.engine.close()
            self.engine = None

    def _outcomes(self) -> list[dict[str, Any]]:
        return [] if self._applied is None else [{"call": self._applied, "kind": "applied"}]

    def _start(self) -> Engine:
        config = self._options.config(self._home)
        # With no local copy in front of it, so that a replay shows what a database gives back.
        store = store_kind(config.store).open_whole(config)
        self.engine = Engine(config, recorded=recorded_source, store=store)
        self.engine.open_session(
            SessionOpenParams(
                session=self._transcript.id,
                file=None,
                cwd=self._transcript.cwd,
                reason="startup",
                parent=None,
            )
        )
        return self.engine

    def _merge(self, answer: AssembleResult) -> None:
        start = answer["from"]
        self._edits = {i: b for i, b in self._edits.items() if i < start} | dict(answer["edits"])
        kept = {i: m for i, m in self._inserts.items() if i < start}
        self._inserts = kept | dict(answer["inserts"])
        self._drops = {i for i in self._drops if i < start} | set(answer["drops"])


def _unreported(message: Message) -> Message:
    """Without the provider's figures: they are of the prompts that were sent at the time."""
    return {k: v for k, v in message.items() if k != "usage"}


def recorded_source(store: Store, cwd: str) -> FileSource:
    """Files as the recorded results tell of them."""
    return RecordedSource(store, FilesystemMap(REPLAY_FILESYSTEM, [], cwd=cwd))
