"""Removes a text from documents, messages and blobs. Pure."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from foredeck.model.identity import canonical_json, decode_text, encode_text, hash_text, sha256_hex
from foredeck.model.messages import is_digest

PURGED = "[purged]"

CUT_CHARS = 8
"""Enough characters of a literal next to a cut."""

KEPT = frozenset(
    {
        *("id", "type", "identity_hash", "token", "harness", "kind", "role", "place"),
        *("session", "session_id", "session_ref", "chat_ref", "turn_ref", "parent_ref", "turn"),
        *("object", "parent", "previous", "parent_session", "started_by", "system_prompt_ref"),
        *("origin", "generator", "parent_refs", "toolcall_ids", "file_refs", "provider_call_id"),
        *("project", "owner", "category", "state", "status", "act", "learned_from", "scope"),
        *("vouched", "begun_by", "superseded_by"),
    }
)
"""Fields that find and join documents, without text."""

JOINED = frozenset(
    {"provenance", "grounds", "version_ref", "file_version_ref", "links", "dependencies", "paths"}
)
"""Fields that hold `KEPT` fields; elsewhere equal names are just text."""

OWN_WORDS = ("assistant", "toolResult", "toolCall", "thinking", "system", "user", "text", PURGED)
"""Words without which messages cannot be read."""

_UTF_16 = (("utf-16-le", "surrogatepass"), ("utf-16-be", "surrogatepass"))
_CUT_AFTER = re.compile(
    r"\s*(?:\Z|…|\.\.\.|<activate @|activate \"|\[(?:Showing l|Output truncated)"
    r"|[(\[][\d,]+ [^)\]\n]{0,40}(?:left out|more characters|more lines|truncated))"
)
_CUT_BEFORE = re.compile(
    r"(?:\A|…|\.\.\.|chars folded(?: by foredeck)?>|(?:left out|truncated)[^)\]\n]{0,80}[)\]]"
    r"| chars [\d-]{1,40}[^\n]*)\s*\Z"
)
_CUT_TWICE = re.compile(r"(?:…|\.\.\.)(.{8,}?)(?=…|\.\.\.)")
"""Marks of cuts by foredeck or host."""
_NEAR = 240


class Redaction:
    """What is redacted: literals, also encoded or cut, patterns, and whole texts."""

    def __init__(
        self,
        literals: Iterable[str] = (),
        patterns: Sequence[re.Pattern[str]] = (),
        whole: Iterable[str] = (),
        exact: Iterable[str] = (),
    ) -> None:
        """`whole`: hashes of texts that go; `exact`: texts that are not searched for parts."""
        self.literals, self.exact = list(dict.fromkeys(literals)), list(dict.fromkeys(exact))
        self.patterns = patterns
        self.whole = frozenset(whole)
        texts = [*self.literals, *self.exact]
        self._exact = _any_of(form for text in texts for form in forms(text))
        self._longer = [text for text in self.literals if len(text) > CUT_CHARS]
        self._starts = _by_piece(self._longer, slice(CUT_CHARS))
        self._ends = _by_piece(self._longer, slice(-CUT_CHARS, None))
        self._start, self._end = _any_of(self._starts), _any_of(self._ends)
        self._in_utf_16 = [
            (text.encode(*name), PURGED.encode(*name)) for text in texts for name in _UTF_16
        ]

    @property
    def needles(self) -> list[bytes]:
        """Search strings for raw files: literal, JSON and UTF-16."""
        texts = (form for text in (*self.literals, *self.exact) for form in forms(text))
        return [*map(encode_text, texts), *(encoded for encoded, _ in self._in_utf_16)]

    def text(self, text: str) -> str:
        """The text without it."""
        if self.whole and hash_text(text) in self.whole:
            return PURGED
        if self._exact is not None:
            text = self._exact.sub(PURGED, text)
        for pattern in self.patterns:
            text = pattern.sub(PURGED, text)
        return self._without_pieces(text)

    def data(self, data: bytes) -> bytes:
        """The bytes without it."""
        text, errors = _as_text(data)
        cleaned = self.text(text)
        if cleaned != text:
            data = cleaned.encode("utf-8", errors)
        for encoded, instead in self._in_utf_16:
            data = data.replace(encoded, instead)
        return data

    def found_in(self, data: bytes) -> Iterator[str]:
        """Matches of the patterns in bytes."""
        texts = [_as_text(data)[0]]
        if data.count(0) * 5 > len(data):
            for name, _ in _UTF_16:
                texts += [data[start:].decode(name, "replace") for start in (0, 1)]
        for text in texts:
            for pattern in self.patterns:
                yield from (match[0] for match in pattern.finditer(text))

    def _without_pieces(self, text: str) -> str:
        last = len(text) + 1
        for start, end in sorted(self._pieces(text), reverse=True):
            text = text[:start] + PURGED + text[end:] if end <= last else text
            last = start
        return text

    def _pieces(self, text: str) -> Iterator[tuple[int, int]]:
        if self._start is None or self._end is None:
            return
        for match in self._start.finditer(text):
            for literal in self._starts[match[0]]:
                end = match.start() + _shared(
                    literal, text[match.start() : match.start() + len(literal)]
                )
                if _CUT_AFTER.match(text, end):
                    yield match.start(), end
                    break
        for match in _CUT_TWICE.finditer(text):
            if any(match[1].strip() in literal for literal in self._longer):
                yield match.span(1)
        for match in self._end.finditer(text):
            for literal in self._ends[match[0]]:
                start = match.end() - _shared(
                    literal[::-1], text[max(0, match.end() - len(literal)) : match.end()][::-1]
                )
                if _CUT_BEFORE.search(text, max(0, start - _NEAR), start):
                    yield start, match.end()
                    break


def forms(text: str) -> list[str]:
    """A text literally, on one line, in JSON, and in nested JSON."""
    variants = [text, " ".join(text.split())]
    for _ in range(2):
        variants += [
            json.dumps(form, ensure_ascii=ascii)[1:-1]
            for form in variants
            for ascii in (False, True)
        ]
    return list(dict.fromkeys(variants))


def _any_of(texts: Iterable[str]) -> re.Pattern[str] | None:
    ordered = sorted(texts, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, ordered))) if ordered else None


def _by_piece(literals: Iterable[str], piece: slice) -> dict[str, list[str]]:
    by_key: dict[str, list[str]] = {}
    for literal in literals:
        by_key.setdefault(literal[piece], []).append(literal)
    return by_key


def _shared(one: str, two: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, two, strict=False)))


def _as_text(data: bytes) -> tuple[str, str]:
    try:
        return decode_text(data), "surrogatepass"
    except UnicodeDecodeError:
        return data.decode("utf-8", "surrogateescape"), "surrogateescape"


@dataclass(slots=True)
class Renaming:
    """New names after a redaction: of blobs, documents, and derived ids."""

    redaction: Redaction
    names: dict[str, str] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    """New bytes by new hash."""
    stale: set[str] = field(default_factory=set)
    """Hashes of blobs that go."""
    _salt: bytes = field(default_factory=lambda: secrets.token_bytes(16))

    def leaf(self, digest: str, data: bytes) -> None:
        """Redacts a blob that names no other."""
        self._put(digest, data, self.redaction.data(data))

    def message(self, address: str, data: bytes) -> None:
        """Redacts a stored message, after the blobs it names."""
        try:
            packed = json.loads(decode_text(data))
        except ValueError:
            self.leaf(address, data)
            return
        changed = self.value(packed)
        if changed != packed:
            self._put(address, data, canonical_json(changed))

    def body(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """A document's redacted fields, with old hashes."""
        return {
            key: self._source(value, body["id"])
            if key == "source"
            else self._renamed(value)
            if key in KEPT
            else self.value(value, joined=key in JOINED)
            for key, value in body.items()
        }

    def _source(self, source: Mapping[str, Any] | None, id: str) -> dict[str, Any] | None:
        """A redacted binding; different documents stay different."""
        if source is None:
            return None
        cleaned: dict[str, Any] = self.value(dict(source))
        if cleaned == source:
            return cleaned
        mark = f"[purged-{sha256_hex(self._salt + encode_text(id))[:8]}]"
        marked: dict[str, Any] = json.loads(json.dumps(cleaned).replace(PURGED, mark))
        return marked

    def value(self, value: Any, *, joined: bool = False) -> Any:
        """A redacted JSON value."""
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
