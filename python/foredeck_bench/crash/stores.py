"""Stores of the rounds, on SQLite or an XTDB node of their own, and what must hold in them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foredeck.config import Config, load_config
from foredeck.context.messages.shape import Message
from foredeck.errors import ForedeckError
from foredeck.lookup.prompts import prompt_at
from foredeck.model.calls import CallRecord, in_order
from foredeck.model.documents import ToolcallDocument
from foredeck.store.place import open_store, store_place
from foredeck.store.store import Store
from foredeck_bench.figures import quantile
from foredeck_xtdb.node import own_node_folder, start, stop
from foredeck_xtdb.runtime import find_runtime, runtime_folder

MOST_EXAMPLES = 10


@dataclass(slots=True)
class Tally:
    advance: Callable[[str], None] = lambda _what: None
    killed: Counter[str] = field(default_factory=Counter)
    compared: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    recovery_s: list[float] = field(default_factory=list)
    examples: list[str] = field(default_factory=list)

    @property
    def rounds(self) -> int:
        return self.killed.total()

    def killed_at(self, what: str) -> None:
        """Counts a round, and what was killed in it."""
        self.killed[what] += 1
        self.advance(what)

    def fault(self, name: str, text: str, count: int = 1) -> None:
        self.faults[name] += count
        if len(self.examples) < MOST_EXAMPLES:
            self.examples.append(f"{name}: {text}")

    def to_json(self) -> dict[str, Any]:
        """As `foredeck bench crash --json` prints it; times in seconds."""
        times = self.recovery_s
        return {
            "rounds": self.rounds,
            "killed": dict(sorted(self.killed.items())),
            "compared": dict(sorted(self.compared.items())),
            "faults": dict(sorted(self.faults.items())),
            "recovery_s": [round(quantile(times, q), 2) for q in (0.5, 0.95)] if times else [],
            "examples": self.examples,
            "ok": not self.faults,
        }


def check_answered(
    store: Store, session: str, answered: Sequence[tuple[int, list[Message]]], tally: Tally
) -> None:
    """Checks that every answered call is stored, with its prompt."""
    records = {
        CallRecord(head.fields).ordinal for head in store.query("call", {"session": session})
    }
    for ordinal, prompt in answered:
        if ordinal not in records:
            tally.fault("missing", f"call {ordinal} of {session}")
        elif _shown(store, session, ordinal, tally) not in (None, _seen(prompt)):
            tally.fault("missing", f"call {ordinal} of {session} is stored as another prompt")


def _seen(prompt: Sequence[Message]) -> list[tuple[Any, Any]]:
    return [(message["role"], message["content"]) for message in prompt]


def _shown(store: Store, session: str, ordinal: int, tally: Tally) -> list[tuple[Any, Any]] | None:
    try:
        return _seen(prompt_at(store, session, ordinal).messages)
    except ForedeckError as error:
        tally.fault("half", f"call {ordinal} of {session}: {error}")
        return None


def check_records(store: Store, session: str, tally: Tally) -> None:
    """Checks that nothing is recorded twice, and all references resolve."""
    records = in_order(head.fields for head in store.query("call", {"session": session}))
    ids = {record.id for record in records}
    lists = ((record.parent, record.tip) for record in records)
    _once(lists, "calls of one list", session, tally)
    for record in records:
        if record.parent and record.parent not in ids:
            tally.fault("half", f"{record.id} continues {record.parent}, which is not there")
    members = store.query("member", {"session": session})
    _once((m.fields["ordinal"] for m in members), "objects of one handle", session, tally)
    stored = store.heads(m.fields["object"] for m in members)
    for member in members:
        if member.fields["object"] not in stored:
            tally.fault("half", f"@{member.fields['ordinal']} of {session} is no object")


def _once(values: Iterable[object], what: str, session: str, tally: Tally) -> None:
    for value, count in Counter(values).items():
        if count > 1:
            tally.fault("doubled", f"{count} {what} in {session}: {value}", count - 1)


def check_results(store: Store, session: str, results: dict[str, str], tally: Tally) -> None:
    """Checks that every tool result is one object with its text."""
    chat = f"chat:{session}"
    by_call: dict[str, list[str | None]] = {}
    for head in store.query("toolcall"):
        if head.fields["chat_ref"] == chat:
            document = store.get(head.id, ToolcallDocument)
            texts = by_call.setdefault(head.fields["provider_call_id"] or head.id, [])
            texts.append(None if document is None else document.content)
    tally.compared["results"] += len(results)
    for id, text in results.items():
        contents = by_call.get(id, [])
        if text not in contents:
            tally.fault("lost_results", f"{id} of {session}: {contents!r:.200}")
        if len(contents) > 1:
            tally.fault("doubled", f"{id} of {session}", len(contents) - 1)


NODE_TIMEOUT_MS = 60_000


def settings(store: str) -> dict[str, str]:
    """Environment variables that choose this store, `sqlite` or `xtdb`."""
    if store == "sqlite":
        return {}
    return {
        "FOREDECK_TEST_CONSTANTS": "1",
        "FOREDECK_STORE": "xtdb",
        "FOREDECK_XTDB__TIMEOUT_MS": str(NODE_TIMEOUT_MS),
    }


@contextmanager
def prepared(home: Path, store: str, installed: Path | None = None) -> Iterator[None]:
    """Prepares `home`; its XTDB node runs until the block ends. Raises `StoreUnavailable`."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if store == "sqlite":
        yield
        return

    runtime = find_runtime(installed or load_config(environ=os.environ).config.home)
    link = runtime_folder(home)
    link.parent.mkdir(mode=0o700, exist_ok=True)
    link.symlink_to(runtime.folder, target_is_directory=True)
    try:
        start(own_node_folder(home), runtime)
        yield
    finally:
        stop(own_node_folder(home))


def settings_of(home: Path, store: str) -> dict[str, Any]:
    """Fields of `Config` for a store in `home`."""
    more = {"xtdb": {"timeout_ms": NODE_TIMEOUT_MS}} if store == "xtdb" else {}
    return {"home": home, "store": store, **more}


def opened(home: Path, store: str) -> closing[Store]:
    """The store in `home`."""
    # The local copy is enough: no thread is left that looks after the node.
    return closing(open_store(Config(**settings_of(home, store)), lazy=True))


def check_database(home: Path, store: str, tally: Tally) -> None:
    """Checks that XTDB has what the local copy has."""
    comparison = store_place(Config(**settings_of(home, store))).deliver_and_compare()
    if comparison is None:
        return
    if comparison.quarantined:
        text = f"XTDB refused {comparison.quarantined}: {comparison.reason}"
        tally.fault("missing", text, comparison.quarantined)
    if comparison.differs:
        tally.fault("missing", f"XTDB and the local copy differ: {comparison.differs}")
    if comparison.extra > 0:
        tally.fault("doubled", f"XTDB has {comparison.extra} transactions more", comparison.extra)
