"""Two stores that get the same operations, and must give the same answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from foredeck.errors import StoreError
from foredeck.model.documents import Document
from foredeck.store.protocol import Batch, Change, Head, Origin, Scalar, Store, Token

D = TypeVar("D", bound=Document)


class Both:
    """A `Store` that is two. Its tokens are those of the first; `names` translates them into those
    of the second, and outlives the stores."""

    def __init__(self, first: Store, second: Store, names: dict[Token, Token]) -> None:
        self._first = first
        self._second = second
        self._names = names

    def _to_second(self, token: Token) -> Token:
        return self._names.get(token, token)

    def _maybe(self, token: Token | None) -> Token | None:
        return None if token is None else self._to_second(token)

    def _agree(
        self,
        one: Callable[[], Any],
        two: Callable[[], Any],
        translate: Callable[[Any], Any] = lambda answer: answer,
    ) -> Any:
        """The answer of the first, which the second has given, too; or the error of both."""
        answers = [_answer(one), _answer(two)]
        failed = [isinstance(answer, Exception) for answer in answers]
        if any(failed):
            assert all(failed), answers
            assert type(answers[0]) is type(answers[1]), answers
            raise answers[0]
        assert translate(answers[0]) == answers[1]
        return answers[0]

    def _head(self, head: Head | None) -> Head | None:
        return None if head is None else replace(head, token=self._to_second(head.token))

    def _heads(self, heads: Iterable[Head]) -> list[Head | None]:
        return [self._head(head) for head in heads]

    def commit(self, batch: Batch, *, origin: Origin | None = None) -> Token:
        """See `Store.commit`."""
        translated = Batch(
            batch.puts, batch.blobs, {id: self._maybe(t) for id, t in batch.expect.items()}
        )
        known = origin and replace(origin, token=self._to_second(origin.token))
        tokens: list[Token] = []

        def commit(store: Store, batch: Batch, origin: Origin | None) -> None:
            tokens.append(store.commit(batch, origin=origin))

        self._agree(
            lambda: commit(self._first, batch, origin),
            lambda: commit(self._second, translated, known),
        )
        self._names[tokens[0]] = tokens[1]
        return tokens[0]

    def get(self, id: str, kind: type[D], at: Token | None = None) -> D | None:
        """See `Store.get`."""
        found: D | None = self._agree(
            lambda: self._first.get(id, kind, at),
            lambda: self._second.get(id, kind, self._maybe(at)),
        )
        return found

    def head(self, id: str, at: Token | None = None) -> Head | None:
        """See `Store.head`."""
        found: Head | None = self._agree(
            lambda: _plain(self._first.head(id, at)),
            lambda: _plain(self._second.head(id, self._maybe(at))),
            self._head,
        )
        return found

    def heads(self, ids: Iterable[str]) -> dict[str, Head]:
        """See `Store.heads`."""
        wanted = list(ids)

        def heads(store: Store) -> dict[str, Head | None]:
            return {id: _plain(head) for id, head in store.heads(wanted).items()}

        found: dict[str, Head] = self._agree(
            lambda: heads(self._first),
            lambda: heads(self._second),
            lambda heads: {id: self._head(head) for id, head in heads.items()},
        )
        return found

    def history(self, id: str) -> list[Head]:
        """See `Store.history`."""
        found: list[Head] = self._agree(
            lambda: list(map(_plain, self._first.history(id))),
            lambda: list(map(_plain, self._second.history(id))),
            self._heads,
        )
        return found

    def query(
        self,
        type: str,
        where: Mapping[str, Scalar | None] | None = None,
        *,
        limit: int | None = None,
    ) -> list[Head]:
        """See `Store.query`. Both stores give the same order."""
        found: list[Head] = self._agree(
            lambda: list(map(_plain, self._first.query(type, where, limit=limit))),
            lambda: list(map(_plain, self._second.query(type, where, limit=limit))),
            self._heads,
        )
        return found

    def blob(self, digest: str) -> bytes:
        """See `Store.blob`."""
        found: bytes = self._agree(
            lambda: self._first.blob(digest), lambda: self._second.blob(digest)
        )
        return found

    def blobs(self, digests: Iterable[str]) -> dict[str, bytes]:
        """See `Store.blobs`."""
        wanted = list(digests)
        found: dict[str, bytes] = self._agree(
            lambda: self._first.blobs(wanted), lambda: self._second.blobs(wanted)
        )
        return found

    def changes_since(self, token: Token | None, *, limit: int = 1000) -> Sequence[Change]:
        """See `Store.changes_since`."""
        found: list[Change] = self._agree(
            lambda: list(self._first.changes_since(token, limit=limit)),
            lambda: list(self._second.changes_since(self._maybe(token), limit=limit)),
            lambda changes: [replace(c, token=self._to_second(c.token)) for c in changes],
        )
        return found

    def transactions(self, tokens: Iterable[Token]) -> list[Origin]:
        """See `Store.transactions`."""
        wanted = list(tokens)
        found: list[Origin] = self._agree(
            lambda: self._first.transactions(wanted),
            lambda: self._second.transactions([self._to_second(token) for token in wanted]),
            lambda origins: [replace(o, token=self._to_second(o.token)) for o in origins],
        )
        return found

    def latest(self) -> Token | None:
        """See `Store.latest`."""
        found: Token | None = self._agree(self._first.latest, self._second.latest, self._maybe)
        return found

    def close(self) -> None:
        """See `Store.close`."""
        self._first.close()
        self._second.close()


def _plain(head: Head | None) -> Head | None:
    return None if head is None else replace(head, fields=dict(head.fields))


def _answer(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except (StoreError, ValueError) as error:
        return error
