"""What a run took, from what Pi and foredeck have stored of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foredeck.accounting.asked import cost_of, stored_questions
from foredeck.config import Config
from foredeck.model.calls import CallRecord
from foredeck.store.opening import open_store
from foredeck.store.registry import store_kind


@dataclass(slots=True)
class RunFigures:
    """Sums over the calls of a run, as the provider reported them. Tokens; `cost` in dollars, by
    the prices that Pi knows for the model."""

    calls: int = 0
    fresh: int = 0
    """Input that no cache held or took."""
    read: int = 0
    written: int = 0
    output: int = 0
    cost: float = 0.0
    error: str = ""
    """Why the last call failed; empty where it was answered."""

    def add(self, answer: dict[str, Any]) -> None:
        """One answer of the model."""
        self.error = ""
        if answer.get("stopReason") in ("error", "aborted"):
            self.error = str(answer.get("errorMessage") or answer["stopReason"])
        usage = answer.get("usage") or {}
        self.calls += not self.error
        self.fresh += int(usage.get("input") or 0)
        self.read += int(usage.get("cacheRead") or 0)
        self.written += int(usage.get("cacheWrite") or 0)
        self.output += int(usage.get("output") or 0)
        self.cost += float((usage.get("cost") or {}).get("total") or 0)


@dataclass(frozen=True, slots=True)
class OwnShare:
    """What foredeck did in a run: calls whose prompts it made, and what it asked of a model."""

    managed: int = 0
    asked: int = 0
    asked_cost: float = 0.0


def spent_in(agent_dir: Path) -> RunFigures:
    """Of all sessions that Pi has kept in its folder."""
    found = RunFigures()
    for answer in _answers(sorted((agent_dir / "sessions").rglob("*.jsonl"))):
        found.add(answer)
    return found


def _answers(files: Iterable[Path]) -> Iterator[dict[str, Any]]:
    for file in files:
        # By line feeds alone: a text may hold what else Python takes for the end of a line.
        for line in file.read_text(encoding="utf-8").split("\n"):
            entry = json.loads(line) if line else {}
            message = entry.get("message") or {}
            if entry.get("type") == "message" and message.get("role") == "assistant":
                yield message


def own_share(home: Path) -> OwnShare:
    """Of what foredeck has stored in a state folder; nothing where it has stored nothing."""
    config = Config(home=home)
    if not store_kind(config.store).exists(config):
        return OwnShare()
    with closing(open_store(config, lazy=True)) as store:
        records = [CallRecord(head.fields) for head in store.query("call")]
        asked = [
            question
            for head in store.query("session")
            for question in stored_questions(store, str(head.fields["session_id"]))
        ]
    managed = sum(not record.decision.is_host for record in records)
    return OwnShare(managed, len(asked), sum(map(cost_of, asked)))
