"""What texts are made of, for many versions at once: a store is asked twice for a hundred, not
once for each."""

from __future__ import annotations

from collections.abc import Iterable

from foredeck.errors import Missing
from foredeck.model.canonical import decode_text
from foredeck.model.kinds import kind_of
from foredeck.model.messages import marked
from foredeck.store.protocol import Head, Store
from foredeck.store.references import in_message


class Fetched:
    """The blobs and contents that the texts of some versions are made of."""

    def __init__(self, store: Store, heads: Iterable[Head]) -> None:
        self._store = store
        messages: set[str] = set()
        wanted: set[str] = set()
        for head in heads:
            fields = head.fields
            if head.type == "turn":
                named = [fields.get("user"), fields.get("assistant"), *(fields.get("others") or ())]
                messages.update(address for address in named if address)
            elif fields.get("text_hash"):
                wanted.add(fields["text_hash"])
            if head.type == "toolcall":
                wanted.update(marked([fields.get("args"), fields.get("details")]))
        self._blobs = store.blobs(messages | wanted)
        inner = set[str]().union(*(in_message(self._blobs.get(address)) for address in messages))
        self._blobs |= store.blobs(inner - self._blobs.keys())

    def blob(self, digest: str) -> bytes:
        """The bytes with this hash. Raises `Missing`."""
        if digest not in self._blobs:
            raise Missing(f"no blob {digest} in this store")
        return self._blobs[digest]

    def content(self, head: Head) -> str:
        """The content of a version, empty for none. Raises `Missing`."""
        digest = head.fields.get("text_hash")
        if digest is None:
            return ""
        if digest in self._blobs:
            return decode_text(self._blobs[digest])
        # Short contents are kept within the version.
        document = self._store.get(head.id, kind_of(head.type), head.token)
        return "" if document is None else document.content or ""
