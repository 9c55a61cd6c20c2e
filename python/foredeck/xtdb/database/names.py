"""What documents and attributes are called in XTDB, and which values can be looked up.

Every name begins with a namespace, so that one server can hold several stores, and documents of
others beside them. In the namespace `foredeck`, people find an object's versions under the id
`foredeck/doc/<id>` and look for `[?e :foredeck/type "file"]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from foredeck.errors import ConfigError
from foredeck.model.canonical import encode_text, hash_value, sha256_hex
from foredeck.store.fields import INDEXED, field_value

_LONGEST = 400
_HASHED = "~"
_NAMESPACE = re.compile(r"[a-z][a-z0-9_-]{0,63}")


class XtdbNames:
    """Ids and attribute names of one namespace."""

    def __init__(self, namespace: str) -> None:
        """Raises `ConfigError` for a namespace that cannot be part of an EDN keyword."""
        if not _NAMESPACE.fullmatch(namespace):
            raise ConfigError(
                f"{namespace!r} cannot name a store in XTDB: use small letters, digits, - and _, "
                "a letter first, 64 at most"
            )
        self.namespace = namespace
        self.clock = f"{namespace}/clock"

    def document(self, id: str) -> str:
        """XTDB's id of the document with this id."""
        return f"{self.namespace}/doc/{plain(id)}"

    def id_of(self, eid: str) -> str | None:
        """The inverse of `document`; None where the id was hashed."""
        id = eid.removeprefix(f"{self.namespace}/doc/")
        return None if id.startswith(_HASHED) else id

    def late(self, id: str, token: str) -> str:
        """XTDB's id of one version that came in after newer ones."""
        return f"{self.namespace}/late/{plain(token)}/{plain(id)}"

    def blob(self, digest: str) -> str:
        """XTDB's id of the blob with this SHA-256."""
        return f"{self.namespace}/blob/{plain(digest)}"

    def transaction(self, token: str) -> str:
        """XTDB's id of the record of a transaction."""
        return f"{self.namespace}/tx/{plain(token)}"

    def attribute(self, name: str) -> str:
        """The key of an attribute in a document."""
        return f"{self.namespace}/{name.replace('.', '_')}"

    def keyword(self, name: str) -> str:
        """The same attribute in a query."""
        return f":{self.attribute(name)}"

    def attributes(self, fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Keys and values by which a version can be found, of the fields that it has."""
        for name in INDEXED:
            value = field_value(fields, name)
            if value is not None:
                yield self.attribute(name), lookup_value(value)


def plain(text: str) -> str:
    """`text` itself, or its hash where it is long or holds what XTDB's text cannot."""
    return text if _is_plain(text) else _HASHED + sha256_hex(encode_text(text))


def lookup_value(value: Any) -> Any:
    """What a field's value is looked up by: itself where XTDB can compare it, else a hash."""
    if isinstance(value, bool) or (isinstance(value, int) and -(2**63) <= value < 2**63):
        return value
    if isinstance(value, str):
        return plain(value)
    return _HASHED + hash_value(value)


def _is_plain(text: str) -> bool:
    if len(text) > _LONGEST or text.startswith(_HASHED):
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
