"""Commits that the node orders by itself, by the transaction function of `xtdb/src/.../commit.clj`.

A commit that matches the clock fails whenever another one was quicker. Where that happens, and
for transactions of other stores, of which nothing has to be read then, the node is asked to check
what is expected and to fill in place and time while it indexes the transaction, when nothing can
come between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from foredeck.store.protocol import Origin, Token
from foredeck.xtdb.database.client import Operation
from foredeck.xtdb.database.documents import StoredVersion, Transaction
from foredeck.xtdb.database.names import XtdbNames
from foredeck.xtdb.database.planning import Prepared, put_blobs


def stamped_operations(
    names: XtdbNames,
    function: str,
    token: Token,
    time: int | Origin,
    nonce: str,
    documents: Sequence[Prepared],
    blobs: Mapping[str, bytes],
    expect: Mapping[str, Token | None],
    unless: Iterable[Token],
) -> list[Operation]:
    """What to send: it commits unless something expected does not hold, an identity differs, or
    one of the transactions `unless` (or this one) has committed already.

    `time`: the present one in milliseconds, or the transaction of another store that this is:
    then it is also refused where a version is there that is not older.
    """
    imported = isinstance(time, Origin)
    changes = tuple((document.id, document.type) for document in documents)
    # Time and place are the function's to fill in.
    record = Transaction(Origin(token, 0), 0, nonce, imported, changes)
    arguments = {
        "namespace": names.namespace,
        "now": 0 if isinstance(time, Origin) else time,
        "at": time.time_ms if isinstance(time, Origin) else None,
        "unless": [names.transaction(other) for other in dict.fromkeys([token, *unless])],
        "expect": [{"eid": names.document(id), "token": t} for id, t in expect.items()],
        "record": record.to_doc(names),
        "puts": [
            StoredVersion(token, 0, document.type, 0, False, document.text).to_doc(
                names, names.document(document.id), document.fields
            )
            for document in documents
        ],
    }
    return [*put_blobs(names, blobs), ["fn", function, arguments]]
