"""XTDB 1 over HTTP, with errors of the store's own.

JSON both ways, except queries, which are EDN.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import httpx

from foredeck.errors import StoreError, StoreUnavailable

if TYPE_CHECKING:
    from ssl import SSLContext

CHUNK = 500
"""How many ids one query asks for."""
FEW = 4
"""Up to this many documents are fetched one by one: a query takes as long as four requests."""


Doc = dict[str, Any]
"""A document as JSON: keys with namespace (`xt/id`)."""
Operation = list[Any]
"""`["put", doc, valid time]`, `["match", id, doc or None, valid time]`, `["fn", id, arguments]`."""

_BUSY_PAUSE = 0.05
_REPEATS = 4
"""Repetitions of a harmless request after a lost connection."""
_BELOW = re.compile(r'"class":"(java\.(sql|io|net)|org\.(postgresql|apache\.kafka))\.')
"""What a node answers when its Postgres or Kafka is away."""
_UNREACHABLE = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


_FIRST_TIME = datetime(1970, 1, 1, tzinfo=UTC)


def valid_time(revision: int) -> str:
    # No clock is in it, so none that steps back can hide a version. It is not the same for all
    # because XTDB would then walk through all versions of a document to add one.
    moment = _FIRST_TIME + timedelta(milliseconds=revision)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@cache
def _certificates() -> SSLContext:
    """What `https` servers are checked against."""
    # Reading it takes 20 ms.
    return httpx.create_ssl_context(trust_env=False)


class OutcomeUnknown(StoreUnavailable):
    """A transaction was sent without an answer: it may be in the log."""


class Refused(StoreError):
    """The server has answered with an error."""

    def __init__(self, url: str, status: int, text: str) -> None:
        super().__init__(f"XTDB at {url} refused ({status}): {text[:500]}")
        self.status = status
        self.text = text
        """The body of the answer."""


class TokenRefused(StoreUnavailable):
    """The server asks for another token; trying again does not help."""


class XtdbClient:
    """One server. Not thread-safe."""

    def __init__(self, url: str, *, token: str | None = None, timeout_ms: int = 10_000) -> None:
        self.url = url.rstrip("/")
        self.timeout_ms = timeout_ms
        headers = {"Accept": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        self._http = httpx.Client(
            base_url=f"{self.url}/_xtdb",
            headers=headers,
            timeout=httpx.Timeout(timeout_ms / 1000),
            limits=httpx.Limits(max_connections=4, keepalive_expiry=20),
            # A proxy has no business between this process and its database.
            trust_env=False,
            verify=_certificates(),
        )

    def close(self) -> None:
        self._http.close()

    # Writing

    def commit(self, operations: Sequence[Operation]) -> bool:
        """Appends a transaction and waits until it is indexed; returns whether its matches held.

        Raises `StoreUnavailable` if it was not sent, `StoreError` if refused, and `OutcomeUnknown`
        for later trouble.
        """
        body = json.dumps({"tx-ops": operations}, ensure_ascii=False, separators=(",", ":"))
        answer = self._send(
            "POST",
            "/submit-tx",
            content=body.encode(),
            params={"await-tx-timeout": self._longest_wait},
            headers={"Content-Type": "application/json"},
            safe=False,
        )
        if answer.status_code == 500:
            # Its log may have it: what failed may be the answer of the database below.
            raise OutcomeUnknown(f"XTDB at {self.url} failed: {answer.text[:500]}")
        submitted = self._json(answer, 202)
        # Foredeck's node waits by itself and says whether it has committed; others are asked.
        outcome: bool | None = submitted.get("txCommitted?")
        if outcome is not None:
            return outcome
        try:
            return self.committed(int(submitted["txId"]))
        except StoreUnavailable as error:
            raise OutcomeUnknown(str(error)) from error

    def committed(self, tx_id: int) -> bool:
        """Waits until a transaction is indexed; returns whether its matches held. Raises
        `OutcomeUnknown`."""
        # One request where the server waits by itself, three where it does not know how to.
        waiting = {"await-tx-id": tx_id, "await-tx-timeout": self._longest_wait}
        answer = self._get("/tx-committed", {"tx-id": tx_id, **waiting})
        if answer.status_code != 200:
            self.await_tx(tx_id)
            answer = self._get("/tx-committed", {"tx-id": tx_id})
        return bool(self._json(answer, 200)["txCommitted?"])

    @property
    def _longest_wait(self) -> int:
        # The server gives up before the connection does, so that its answer still arrives.
        return max(1, self.timeout_ms - 500)

    def await_tx(self, tx_id: int) -> None:
        """Waits until a transaction is indexed. Raises `OutcomeUnknown`."""
        answer = self._get("/await-tx", {"tx-id": tx_id, "timeout": self._longest_wait})
        if answer.status_code == 500 and "TimeoutException" in answer.text:
            raise OutcomeUnknown(
                f"XTDB at {self.url} has not indexed transaction {tx_id} in {self.timeout_ms} ms"
            )
        self._json(answer, 200)

    def catch_up(self) -> None:
        deadline = time.monotonic() + self.timeout_ms / 1000
        tx_id = self.latest("submitted")
        while tx_id is not None:
            try:
                self.await_tx(tx_id)
                return
            except OutcomeUnknown:
                # A server may wait for a shorter time than it is asked to.
                if time.monotonic() > deadline - 1:
                    raise

    def latest(self, kind: Literal["submitted", "completed"]) -> int | None:
        """The last transaction in the log, or indexed."""
        answer = self._get(f"/latest-{kind}-tx", {})
        return None if answer.status_code == 404 else int(self._json(answer, 200)["txId"])

    # Reading

    def entity(self, eid: str) -> Doc | None:
        answer = self._get("/entity", {"eid": eid})
        return None if answer.status_code == 404 else dict(self._json(answer, 200))

    def entity_tx(self, eid: str) -> int | None:
        answer = self._get("/entity-tx", {"eid": eid})
        return None if answer.status_code == 404 else int(self._json(answer, 200)["txId"])

    def history(self, eid: str) -> list[Doc]:
        answer = self._get(
            "/entity",
            {
                "eid": eid,
                "history": "true",
                "sort-order": "asc",
                "with-docs": "true",
                "with-corrections": "true",
            },
        )
        entries = sorted(self._json(answer, 200), key=lambda entry: entry["txId"])
        return [entry["doc"] for entry in entries if entry.get("doc")]

    def query(self, query: str, *args: Any, tx_id: int | None = None) -> list[list[Any]]:
        """Runs a Datalog query in EDN; `args` are values for its `:in`."""
        values = " ".join(to_edn(arg) for arg in args)
        basis = None if tx_id is None else {"tx-id": tx_id}
        rows: list[list[Any]] = self.ask(f"{{:query {query} :in-args [{values}]}}", basis)
        return rows

    def ask(self, body: str, basis: Mapping[str, int] | None = None) -> list[Any]:
        """Runs a query as XTDB takes it. Raises `Refused`, and `StoreError` if it failed while
        running."""
        headers = {"Content-Type": "application/edn"}
        params = dict(basis or {})
        answer = self._send("POST", "/query", content=body.encode(), headers=headers, params=params)
        if answer.status_code == 200 and not answer.content:
            raise StoreError(f"XTDB at {self.url}: the query failed while it ran")
        return list(self._json(answer, 200))

    def status(self) -> Doc:
        """What the node reports about itself."""
        return dict(self._json(self._get("/status", {}), 200))

    def commit_function(self) -> str | None:
        """The transaction function of foredeck's own node."""
        return self.status().get("commitFunction")

    # Transport

    def _get(self, path: str, params: Mapping[str, str | int]) -> httpx.Response:
        return self._send("GET", path, params=dict(params))

    def _send(self, method: str, path: str, *, safe: bool = True, **more: Any) -> httpx.Response:
        """One request; `safe` ones are repeated after a lost connection."""
        deadline = time.monotonic() + self.timeout_ms / 1000
        again = _REPEATS if safe else 0
        while True:
            try:
                answer = self._http.request(method, path, **more)
            except _UNREACHABLE as error:
                raise StoreUnavailable(
                    f"XTDB at {self.url} cannot be reached ({error}): "
                    "`foredeck xtdb status` shows its state, `foredeck xtdb up` starts it"
                ) from error
            except httpx.HTTPError as error:
                if again and not isinstance(error, httpx.TimeoutException):
                    again -= 1
                    continue
                kind = StoreUnavailable if safe else OutcomeUnknown
                raise kind(f"XTDB at {self.url} did not answer: {_reason(error)}") from error
            if answer.status_code != 503 or time.monotonic() > deadline:
                return answer
            time.sleep(_BUSY_PAUSE)

    def _json(self, answer: httpx.Response, expected: int) -> Any:
        if answer.status_code == expected:
            try:
                return answer.json()
            except ValueError as error:
                raise StoreError(f"XTDB at {self.url} answered with something else") from error
        if answer.status_code == 401:
            raise TokenRefused(self._token_refused())
        if answer.status_code == 503:
            raise StoreUnavailable(f"XTDB at {self.url} is busy: too many requests are waiting")
        if answer.status_code == 500 and "ingester aborted" in answer.text:
            raise StoreUnavailable(self._stopped_indexing(answer))
        if answer.status_code == 500 and _BELOW.search(answer.text):
            raise StoreUnavailable(
                f"XTDB at {self.url} cannot reach what keeps its data: {answer.text[:500]}"
            )
        raise Refused(self.url, answer.status_code, answer.text)

    def _stopped_indexing(self, answer: httpx.Response) -> str:
        reason = _field(answer, "reason") or "`foredeck xtdb logs` says why"
        return (
            f"XTDB at {self.url} has stopped indexing ({reason}): once that is mended, "
            "`foredeck xtdb down` and `foredeck xtdb up` start it again"
        )

    def _token_refused(self) -> str:
        if "Authorization" not in self._http.headers:
            return f"XTDB at {self.url} asks for a token: xtdb.token_file names the file with it"
        return (
            f"XTDB at {self.url} does not accept the token: that in xtdb.token_file is another "
            "node's; a node of your own takes a token that is new after `foredeck xtdb down` and "
            "`up`"
        )


def _field(answer: httpx.Response, name: str) -> str | None:
    with suppress(ValueError):
        body = answer.json()
        if isinstance(body, dict) and isinstance(body.get(name), str):
            return str(body[name])
    return None


def _reason(error: httpx.HTTPError) -> str:
    return str(error) or type(error).__name__


def to_edn(value: Any) -> str:
    """`value` as EDN. Raises `TypeError` except for str, int, bool, None, and lists of those."""
    match value:
        case None:
            return "nil"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            # EDN's reader knows every escape that JSON's writer makes.
            return json.dumps(value, ensure_ascii=False)
        case list() | tuple():
            return f"[{' '.join(map(to_edn, value))}]"
    raise TypeError(f"{type(value).__name__} is not written as EDN")
