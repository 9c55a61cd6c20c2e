"""Commits that the node orders by itself, by the transaction function of `xtdb/src/.../commit.clj`.

A commit that matches the clock fails whenever another one was quicker. Where that happens often,
the node is asked to check what is expected and to fill in place and time while it indexes the
transaction, when nothing can come between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from foredeck.store.protocol import Origin, Token
from foredeck.store.xtdb.client import Operation
from foredeck.store.xtdb.documents import Transaction, Version
from foredeck.store.xtdb.names import Names
from foredeck.store.xtdb.planning import Prepared, put_blobs


def stamped_operations(
    names: Names,
    function: str,
    token: Token,
    nonce: str,
    now_ms: int,
    documents: Sequence[Prepared],
    blobs: Mapping[str, bytes],
    expect: Mapping[str, Token | None],
    unless: Iterable[Token],
) -> list[Operation]:
    """What to send: it commits unless something expected does not hold, an identity differs, or
    one of the transactions `unless` (or this one) has committed already."""
    origin = Origin(token, 0)  # time and place are the function's to fill in
    changes = tuple((document.id, document.type) for document in documents)
    record = Transaction(origin, 0, nonce, False, changes)
    arguments = {
        "namespace": names.namespace,
        "now": now_ms,
        "unless": [names.transaction(other) for other in dict.fromkeys([token, *unless])],
        "expect": [{"eid": names.document(id), "token": t} for id, t in expect.items()],
        "record": record.to_doc(names),
        "puts": [
            Version(token, 0, document.type, 0, False, document.text).to_doc(
                names, names.document(document.id), document.fields
            )
            for document in documents
        ],
    }
    return [*put_blobs(names, blobs), ["fn", function, arguments]]
