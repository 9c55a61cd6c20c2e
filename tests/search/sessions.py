"""A store with sessions that say given things, and a search over it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foredeck.derived.follower import Follower
from foredeck.model.documents import (
    Provenance,
    ToolcallDocument,
    chat_id,
)
from foredeck.model.messages import pack, store_message
from foredeck.model.records import MemberDocument, TurnDocument, member_id
from foredeck.search.index import Filters, SearchIndex
from foredeck.search.searching import SearchResult, search
from foredeck.store.protocol import Batch
from foredeck.store.store import Store, open_sqlite
from store.documents import file, session_wrapper
from store.sessions import ref_of

START_MS = 1_770_000_000_000
DAY_MS = 86_400_000
TEST = Provenance(origin="test", generator="tool")


@dataclass
class Talk:
    """Writes one session, message after message, into a store."""

    store: Store
    id: str
    cwd: str = "/repo"
    turns: int = 0

    def __post_init__(self) -> None:
        self.store.commit(Batch(puts=[session_wrapper(self.id, cwd=self.cwd)]))

    def say(
        self, user: str = "", assistant: str = "", thinking: str = "", time_ms: int = START_MS
    ) -> str:
        """A turn; returns its id."""
        self.turns += 1
        blobs: dict[str, bytes] = {}
        blocks = [{"type": "thinking", "thinking": thinking}, {"type": "text", "text": assistant}]
        asked = {"role": "user", "content": user, "timestamp": time_ms}
        answer = {"role": "assistant", "content": blocks, "timestamp": time_ms}
        turn = TurnDocument(
            id=f"turn:{self.id}:{self.turns}",
            session=self.id,
            user=store_message(asked, blobs) if user else None,
            assistant=store_message(answer, blobs) if assistant or thinking else None,
            user_turn=self.turns,
        )
        self.store.commit(Batch(puts=[turn.seal()], blobs=blobs))
        return turn.id

    def run(
        self,
        tool: str,
        output: str,
        failed: bool = False,
        asked_ms: int | None = None,
        **arguments: Any,
    ) -> str:
        """A tool call, with the turn that asked for it at a time; returns its id."""
        self.turns += 1
        blobs: dict[str, bytes] = {}
        turns = []
        if asked_ms is not None:
            message = {"role": "assistant", "content": [], "timestamp": asked_ms}
            turn = TurnDocument(
                id=f"turn:{self.id}:{self.turns}",
                session=self.id,
                assistant=store_message(message, blobs),
            )
            turns.append(turn.seal())
        call = ToolcallDocument(
            id=f"call-{self.id}-{self.turns}",
            tool=tool,
            args=pack(arguments, blobs),
            status="fail" if failed else "ok",
            chat_ref=chat_id(self.id),
            turn_ref=turns[0].id if turns else None,
            content=output,
            provenance=TEST,
        )
        self.store.commit(Batch(puts=[*turns, call.seal()], blobs=blobs))
        return call.id

    def meet(self, path: str, content: str) -> str:
        """A version of a file that the session has in its index; returns the file's id."""
        self.turns += 1
        document = file(path, content, "test")
        member = MemberDocument(
            id=member_id(self.id, self.turns),
            session=self.id,
            ordinal=self.turns,
            object=document.id,
            object_type="file",
            version_ref=ref_of(document),
        ).seal()
        self.store.commit(Batch(puts=[document, member]))
        return document.id


@dataclass
class Searched:
    """A store in a state folder, and questions to its index, which is brought up to date."""

    home: Path
    store: Store

    @contextmanager
    def index(self) -> Iterator[SearchIndex]:
        """The index, in step with the store."""
        with Follower(self.store, "search", self.home) as follower:
            follower.catch_up()
            yield SearchIndex(follower.db)

    def find(self, query: str, limit: int = 10, around: int = 0, **filters: Any) -> SearchResult:
        """Search."""
        with self.index() as index:
            return search(
                self.store, index, query, Filters(**filters), limit=limit, message_range=around
            )

    def found(self, query: str, **filters: Any) -> list[str]:
        """The documents of the hits, the best first."""
        return [hit.entry.document for hit in self.find(query, **filters).hits]

    def index_bytes(self) -> bytes:
        """Everything in the index's files."""
        return b"".join(path.read_bytes() for path in (self.home / "layers").iterdir())


@contextmanager
def searched(home: Path) -> Iterator[Searched]:
    """A new store in a state folder."""
    with closing(open_sqlite(home / "foredeck.db")) as store:
        yield Searched(home, store)
