"""A text put out of documents, messages and blobs, so that what names them still fits: pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foredeck.model.canonical import canonical_json, decode_text, encode_text, hash_text, sha256_hex
from foredeck.model.messages import is_digest

PURGED = "[purged]"

KEPT = frozenset(
    {
        *("id", "type", "source", "identity_hash", "token", "harness", "kind", "role", "place"),
        *("session", "session_id", "session_ref", "chat_ref", "turn_ref", "parent_ref", "turn"),
        *("object", "parent", "previous", "parent_session", "started_by", "system_prompt_ref"),
        *("origin", "generator", "parent_refs", "toolcall_ids", "file_refs", "provider_call_id"),
        *("project", "owner", "category", "state", "status", "act", "learned_from", "scope"),
        *("vouched", "begun_by", "superseded_by", "path", "cwd", "host_file"),
    }
)
"""Fields by which documents are found and joined. Their values are ids, words of foredeck's own,
and paths; no text of anybody's."""

JOINED = frozenset({"provenance", "grounds", "pin", "file_pin", "links", "dependencies", "paths"})
"""Fields in which such fields stand. In all others, such as a tool's arguments, a field of that
name is anybody's text."""

OWN_WORDS = ("assistant", "toolResult", "toolCall", "thinking", "system", "user", "text")
"""Words of messages, without which they could not be read."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """What is put out: every match of these patterns. `literals`: the same for what is no text."""

    patterns: Sequence[re.Pattern[str]]
    literals: Sequence[str] = ()
    whole: frozenset[str] = frozenset()
    """Hashes of texts that go altogether."""

    def text(self, text: str) -> str:
        """A text without it."""
        if self.whole and hash_text(text) in self.whole:
            return PURGED
        for pattern in self.patterns:
            text = pattern.sub(PURGED, text)
        return text

    def data(self, data: bytes) -> bytes:
        """Bytes without it, whether or not they are text."""
        try:
            text = decode_text(data)
        except UnicodeDecodeError:
            for literal in self.literals:
                data = data.replace(encode_text(literal), PURGED.encode())
            return data
        cleaned = self.text(text)
        return data if cleaned == text else encode_text(cleaned)


@dataclass(slots=True)
class Renaming:
    """What has another name since a text was put out: hashes of blobs and documents, and ids that
    follow from such hashes."""

    redaction: Redaction
    names: dict[str, str] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    """The new bytes by their new hash."""
    stale: set[str] = field(default_factory=set)
    """Hashes of the blobs that go."""

    def leaf(self, digest: str, data: bytes) -> None:
        """A blob that names no other."""
        self._put(digest, data, self.redaction.data(data))

    def message(self, address: str, data: bytes) -> None:
        """A stored message, after the blobs that it names."""
        try:
            packed = json.loads(decode_text(data))
        except ValueError:
            self.leaf(address, data)
            return
        changed = self.value(packed)
        if changed != packed:
            self._put(address, data, canonical_json(changed))

    def body(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a document without the text; its hashes are still the old ones."""
        return {
            key: self._renamed(value) if key in KEPT else self.value(value, joined=key in JOINED)
            for key, value in body.items()
        }

    def value(self, value: Any, *, joined: bool = False) -> Any:
        """A JSON value without the text. `joined`: what joins documents stands in it."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return [self.value(item, joined=joined) for item in value]
        if isinstance(value, dict):
            return {
                self._text(name): self._renamed(item)
                if joined and name in KEPT
                else self.value(item, joined=joined)
                for name, item in value.items()
            }
        return value

    def _text(self, text: str) -> str:
        if text in self.names:
            return self.names[text]
        return text if is_digest(text) else self.redaction.text(text)

    def _renamed(self, value: Any) -> Any:
        """Names alone are changed."""
        if isinstance(value, list):
            return [self._renamed(item) for item in value]
        return self.names.get(value, value) if isinstance(value, str) else value

    def _put(self, digest: str, before: bytes, after: bytes) -> None:
        # Of a text that was pruned a store gives what is left of it, under the name it had.
        if sha256_hex(before) != digest:
            return
        after = PURGED.encode() if digest in self.redaction.whole else after
        if after == before:
            return
        fresh = sha256_hex(after)
        self.names[digest] = fresh
        self.blobs[fresh] = after
        self.stale.add(digest)


def literal_patterns(texts: Iterable[str]) -> list[re.Pattern[str]]:
    """Patterns for texts that are meant as they stand."""
    return [re.compile(re.escape(text)) for text in texts]
