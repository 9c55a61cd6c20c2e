"""Stored host messages, and which result answers which call.

A message is a blob under the hash of its canonical JSON; strings from `LONG_STRING` on are blobs of
their own, marked `{"$text": <hash>}`, images `{"$base64": <hash>}`.
"""

from __future__ import annotations

import base64
import binascii
import json
import marshal
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from foredeck.model.identity import canonical_json, decode_text, encode_text, sha256_hex

WORDS_LEFT = "$words"
"""Key of a pruned message's distinct words, by kind."""

LONG_STRING = 512
"""Length from which a string is a blob."""
_MARKS = frozenset({"$text", "$base64", "$json"})
_SHA256 = re.compile(r"[0-9a-f]{64}")


class MessageKey(NamedTuple):
    """A message's identity: the host's entry id, if known, and the content's address."""

    entry: str | None
    address: str


def entry_at(index: int) -> str:
    """Entry id by list position, for hosts without ids."""
    return f"{index:08x}"


def texts_in(content: Any) -> list[str]:
    """The texts of a message's content, without thinking, calls and images."""
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else ()
    texts = (b.get("text") for b in blocks if isinstance(b, dict) and b.get("type") == "text")
    return [text if isinstance(text, str) else "" for text in texts]


def text_in(content: Any) -> str:
    """As `texts_in`, joined by line breaks."""
    return "\n".join(texts_in(content))


def pack(value: Any, blobs: dict[str, bytes]) -> Any:
    if isinstance(value, str):
        if len(value) < LONG_STRING:
            return value
        return {"$text": put_blob(encode_text(value), blobs)}
    if isinstance(value, list):
        return [pack(item, blobs) for item in value]
    if not isinstance(value, dict):
        return value
    if not _MARKS.isdisjoint(value):
        # An object of the host's that looks like one of our marks: kept whole, as its JSON text.
        return {"$json": put_blob(canonical_json(value), blobs)}
    image = _image_bytes(value) if value.get("type") == "image" else None
    if image is None:
        # Most values are short strings: not to call `pack` for them halves the time.
        return {
            key: item if isinstance(item, str) and len(item) < LONG_STRING else pack(item, blobs)
            for key, item in value.items()
        }
    packed = {key: pack(item, blobs) for key, item in value.items() if key != "data"}
    packed["data"] = {"$base64": put_blob(image, blobs)}
    return packed


def _image_bytes(value: dict[str, Any]) -> bytes | None:
    data = value.get("data")
    if not isinstance(data, str) or len(data) < LONG_STRING:
        return None
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if base64.b64encode(raw).decode() == data else None


def put_blob(data: bytes, blobs: dict[str, bytes]) -> str:
    """Adds `data` to `blobs`; returns its SHA-256."""
    digest = sha256_hex(data)
    blobs[digest] = data
    return digest


def unpack(value: Any, blob: Callable[[str], bytes]) -> Any:
    """The inverse of `pack`; `blob` loads bytes by hash and raises if they are missing."""
    if isinstance(value, list):
        return [unpack(item, blob) for item in value]
    if isinstance(value, dict):
        if len(value) == 1:
            ((key, digest),) = value.items()
            if key == "$text":
                return decode_text(blob(digest))
            if key == "$base64":
                return base64.b64encode(blob(digest)).decode()
            if key == "$json":
                return json.loads(decode_text(blob(digest)))
        return {key: unpack(item, blob) for key, item in value.items()}
    return value


def marked(value: Any) -> Iterator[str]:
    """Hashes of the blobs in a packed value."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, dict):
            if len(item) == 1:
                ((key, digest),) = item.items()
                if key in _MARKS and is_digest(digest):
                    yield digest
                    continue
            stack.extend(item.values())


def is_digest(value: object) -> bool:
    """Whether a value looks like a SHA-256: 64 lower-case hexadecimal digits."""
    return isinstance(value, str) and _SHA256.fullmatch(value) is not None


def store_message(message: dict[str, Any], blobs: dict[str, bytes]) -> str:
    """Adds a message to `blobs`; returns its address."""
    return put_blob(canonical_json(pack(message, blobs)), blobs)


@dataclass(frozen=True, slots=True)
class KnownMessages:
    """Stored messages: a resumed session sends thousands again."""

    addresses: Container[str]
    by_print: dict[str, str]
    """Addresses by fingerprint; sent messages are added."""

    def store(self, message: dict[str, Any], blobs: dict[str, bytes]) -> str:
        """As `store_message`, adding nothing for stored messages."""
        found_by = fingerprint(message)
        address = self.by_print.get(found_by)
        if address is not None and address in self.addresses:
            return address
        own: dict[str, bytes] = {}
        address = self.by_print[found_by] = store_message(message, own)
        if address not in self.addresses:
            blobs.update(own)
        return address


def fingerprint(message: dict[str, Any]) -> str:
    """Distinguishes messages in a quarter of an address's time; one message may have several."""
    # SHA-256 is the fastest of the sound ones: processors have instructions for it.
    return sha256_hex(marshal.dumps(message, 2))[:32]


def load_message(address: str, blob: Callable[[str], bytes]) -> dict[str, Any]:
    """The message as the host gave it; a pruned one without its words."""
    message = load_with_words(address, blob)
    message.pop(WORDS_LEFT, None)
    return message


def load_messages(
    addresses: Iterable[str], blobs: Callable[[Iterable[str]], dict[str, bytes]]
) -> dict[str, dict[str, Any]]:
    """Messages by address, without missing ones."""
    packed = {a: json.loads(decode_text(data)) for a, data in blobs(addresses).items()}
    texts = blobs({digest for value in packed.values() for digest in marked(value)})
    loaded: dict[str, dict[str, Any]] = {}
    for address, value in packed.items():
        if all(digest in texts for digest in marked(value)):
            loaded[address] = unpack(value, texts.__getitem__)
            loaded[address].pop(WORDS_LEFT, None)
    return loaded


def load_with_words(address: str, blob: Callable[[str], bytes]) -> dict[str, Any]:
    """Like `load_message`, with a pruned message's words under `WORDS_LEFT`."""
    loaded = unpack(json.loads(decode_text(blob(address))), blob)
    if not isinstance(loaded, dict):
        raise TypeError(f"blob {address} does not hold a message")
    return loaded


def strings_in(value: Any, *, names: bool = False) -> Iterator[str]:
    # Without recursion: what others have written may be nested deeper than Python calls.
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, list):
            stack.extend(reversed(item))
        elif isinstance(item, dict):
            if names:
                yield from item
            stack.extend(reversed(item.values()))


# Exchanges. A list of the host's may have holes, which `context/plan/wires.py` closes.

MessageKind = Literal["user", "assistant", "result", "context", "opaque"]
"""`context`: text of other origin shown as a user's. `opaque`: not editable, or invisible to the
model."""


class _HasId(Protocol):
    @property
    def id(self) -> str: ...


class CallOrResult(Protocol):
    """A message that may hold calls, or the result of one."""

    @property
    def kind(self) -> MessageKind: ...
    @property
    def calls(self) -> Sequence[_HasId]: ...
    @property
    def call_id(self) -> str: ...
    @property
    def unsent(self) -> bool: ...


def answered_by(calls: Sequence[str], result: str) -> int | None:
    for number, call in enumerate(calls):
        if call == result:
            return number
    may_be = (number for number, call in enumerate(calls) if not (call and result))
    return next(may_be, None)


def are_answered(messages: Iterable[CallOrResult]) -> Iterator[bool]:
    """After each message: whether every call has its result."""
    open_calls: list[str] = []
    for message in messages:
        if message.kind == "assistant" and not message.unsent:
            open_calls += [call.id for call in message.calls]
        elif message.kind == "result":
            at = answered_by(open_calls, message.call_id)
            if at is not None:
                open_calls.pop(at)
        elif message.kind == "user":
            # The host has dropped calls that a new question finds open: it was interrupted.
            open_calls.clear()
        yield not open_calls


def newest_answer(items: Sequence[CallOrResult], before: int, *, sent: bool = False) -> int:
    """The newest answer before a place, or -1. `sent`: neither aborted nor failed."""
    for index in range(before - 1, -1, -1):
        if items[index].kind == "assistant" and not (sent and items[index].unsent):
            return index
    return -1


def exchanges(items: Sequence[CallOrResult], first: int, until: int) -> Iterator[list[int]]:
    """Indexes of each visible message of a span with its results."""
    group: list[int] = []
    for index in range(first, until):
        kind = items[index].kind
        if kind not in ("result", "opaque") and group:
            yield group
            group = []
        if kind != "opaque":
            group.append(index)
    if group:
        yield group


def exchange_of(items: Sequence[CallOrResult], index: int) -> list[int]:
    """A result's answer and all its results; empty for anything else."""
    first = newest_answer(items, index)
    if items[index].kind != "result" or first < 0:
        return []
    if answered_by([call.id for call in items[first].calls], items[index].call_id) is None:
        return []
    group = next(exchanges(items, first, len(items)))
    return group if index in group else []
