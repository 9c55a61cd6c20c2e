"""The first prompt in the other agent: the session's chat, folded for it, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from foredeck.config import Config
from foredeck.context.messages.items import text_block
from foredeck.context.messages.shape import Message, to_item
from foredeck.engine.engine import Engine
from foredeck.hosts.host import Host
from foredeck.hosts.protocol import OutcomeParams, SessionOpenParams
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.model.calls import CallRecord
from foredeck.model.documents import Document
from foredeck.model.messages import text_in
from foredeck.model.quoting import looks_like_ours
from foredeck.model.records import call_id
from foredeck.model.wrappings import asked
from foredeck.prices import Cost, prices, rates_at
from foredeck.store.protocol import Batch, Head, Origin, Scalar, Token
from foredeck.store.store import Store
from foredeck.store.versions import matches
from foredeck_agents.carry.origin import CALLS, NOTE, SourceSession, messages_of

BEFORE = "before"
"""Stands for the model of the first of them."""


@dataclass(frozen=True, slots=True)
class Folded:
    messages: list[Message]
    ours: frozenset[int]
    folded: int
    """Objects that are there as a line."""
    whole: int
    """Tokens before anything was folded."""
    rate: float
    """Characters per token of the model."""


@dataclass(frozen=True, slots=True)
class Going:
    """Where a session goes on: id, folder, file, and the model's record."""

    session: str
    cwd: str
    file: str | None
    harness: str
    model: dict[str, Any]


def folded(
    config: Config, store: Store, origin: SourceSession, going: Going, note: str, time_ms: int
) -> Folded:
    engine = Engine(config, Host(name=going.harness), store=store)
    try:
        host = SimulatedHost(going.session, model={**going.model, "id": BEFORE})
        for each in origin.messages:
            # What another provider has counted says nothing of what is sent now.
            uncounted = {k: v for k, v in each.message.items() if k != "usage"}
            host.add(uncounted, entries=[each.entry])
        engine.open_session(
            SessionOpenParams(
                session=going.session,
                file=going.file,
                cwd=going.cwd,
                reason="fork",
                parent=origin.parent,
                by_user=False,
            )
        )
        # Where it was, then where it goes: nothing is cached for another model, so all folds. No
        # model is asked: the session's cost begins with the first call that is answered.
        before = engine.assemble(host.request(time_ms))
        host.outcomes = [OutcomeParams(call=before["call"] + n, kind="aborted") for n in range(2)]
        host.model = going.model
        # As from the user's side it ends the turn: then no signed reasoning binds what is before.
        said = {"role": "user", "content": [text_block(note)], "timestamp": time_ms}
        host.add(said, entries=[NOTE])
        host.accept(engine.assemble(host.request(time_ms)))
        says = {id(say) for slot in host.plan.slots for say in slot.says}
        # The note as it is: what the engine may have added to it speaks of what is above.
        prompt = [*host.prompt()[:-1], host.messages[-1]]
        ours = {n for n, message in enumerate(prompt) if id(message) in says}
        ours.add(len(prompt) - 1)
        assert engine.opened is not None  # it has just answered
        record = engine.opened.session.chat.newest_record
        assert record is not None
        rate = record.stats.rate
        whole = round(record.stats.chars_host / rate)
        return Folded(prompt, frozenset(ours), record.stats.folded, whole, rate)
    finally:
        engine.close()


MOST_SESSIONS = 20
"""Newest sessions of the agent that are asked for their models."""


class Priced(NamedTuple):
    model: str
    cost: Cost

    def dollars(self, tokens: int) -> float:
        """What a prompt costs that the provider reads for the first time."""
        rates = rates_at(self.cost, tokens)
        return tokens * float(rates.get("cacheWrite") or rates.get("input") or 0) / 1_000_000


def priced(models: Iterable[str]) -> Priced | None:
    """The first of these models that has a price."""
    for model in filter(None, models):
        provider, _, id = model.rpartition("/")
        cost = prices(id, provider.partition("/")[0])
        if cost and cost.get("input"):
            return Priced(model, cost)
    return None


def chars_beside(store: Store, harness: str) -> int:
    """Characters that the agent sends beside the chat: instructions, tools, and what it adds to
    the user's messages. By its newest session; 0 without one."""
    for session in islice(_newest(store, harness), MOST_SESSIONS):
        for number in range(1, CALLS + 2):
            head = store.head(call_id(session, number))
            if head is None:
                break
            record = CallRecord(head.fields)
            if record.system is not None:
                messages = [each.message for each in messages_of(store, record)]
                chat = sum(to_item(m, None, {}).chars - _added_chars(m) for m in messages)
                return record.stats.chars_host - chat
    return 0


def _added_chars(message: Message) -> int:
    """Characters of a message that its agent has written."""
    if message.get("role") in ("assistant", "toolResult"):
        return 0
    text = text_in(message.get("content"))
    if looks_like_ours(text):
        return 0
    return len(text) - len(asked(text) if message.get("role") == "user" else "")


def models_of(store: Store, harness: str) -> Iterator[str]:
    """Models that the agent has used here, newest session first."""
    for session in islice(_newest(store, harness), MOST_SESSIONS):
        turns = store.query("turn", {"session": session})
        metas = (head.fields.get("assistant_meta") or {} for head in reversed(turns))
        yield next((f"{m.get('provider') or ''}/{m['model']}" for m in metas if m.get("model")), "")


def _newest(store: Store, harness: str) -> Iterator[str]:
    heads = store.query("session", {"harness": harness})
    return (str(head.fields["session_id"]) for head in reversed(heads))


D = TypeVar("D", bound=Document)


class Unwritten:
    """A `Store` in front of another one, which stays as it is."""

    def __init__(self, store: Store, time_ms: int) -> None:
        self._store, self._time_ms = store, time_ms
        self._heads: dict[str, Head] = {}
        self._documents: dict[str, Document] = {}
        self._blobs: dict[str, bytes] = {}
        self._count = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def close(self) -> None:
        """The store behind it stays open."""

    def commit(self, batch: Batch, *, origin: Origin | None = None) -> Token:
        del origin
        self._count += 1
        token = Token(f"unwritten-{self._count}")
        self._blobs |= batch.blobs
        for document in batch.puts:
            fields = {n: v for n, v in document.model_dump().items() if n != "content"}
            self._documents[document.id] = document
            self._heads[document.id] = Head(
                document.id, document.type, token, self._time_ms, fields
            )
        return token

    def get(self, id: str, kind: type[D], at: Token | None = None) -> D | None:
        if self._holds(id, at):
            return kind.model_validate(self._documents[id].model_dump())
        return self._store.get(id, kind, at)

    def head(self, id: str, at: Token | None = None) -> Head | None:
        return self._heads[id] if self._holds(id, at) else self._store.head(id, at)

    def _holds(self, id: str, at: Token | None) -> bool:
        return id in self._heads and (at is None or str(at).startswith("unwritten-"))

    def heads(self, ids: Iterable[str]) -> dict[str, Head]:
        asked = list(ids)
        own = {id: self._heads[id] for id in asked if id in self._heads}
        return {**self._store.heads(asked), **own}

    def query(
        self,
        type: str,
        where: Mapping[str, Scalar | None] | None = None,
        *,
        limit: int | None = None,
    ) -> list[Head]:
        stored = self._store.query(type, where, limit=limit)
        own = [
            head
            for head in self._heads.values()
            if head.type == type
            and all(matches(head.fields, n, v) for n, v in (where or {}).items())
        ]
        put = {head.id for head in own}
        return [*(head for head in stored if head.id not in put), *own][:limit]

    def blob(self, digest: str) -> bytes:
        return self._blobs[digest] if digest in self._blobs else self._store.blob(digest)

    def blobs(self, digests: Iterable[str]) -> dict[str, bytes]:
        hashes = list(digests)
        own = {digest: self._blobs[digest] for digest in hashes if digest in self._blobs}
        return {**self._store.blobs(d for d in hashes if d not in own), **own}
