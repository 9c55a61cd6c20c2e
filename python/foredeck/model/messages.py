"""Host messages as stored: one content-addressed JSON blob each, long strings in blobs apart. And
exchanges: which result answers which call in a list of messages.

A message is whatever JSON object the host sent. Its hash is that of its canonical JSON, so the
same message is stored once. Strings of `LONG_STRING` characters or more are replaced by
`{"$text": <hash>}` and base64 image data by `{"$base64": <hash>}`; a tool result's text thus
shares its blob with the tool call's content and with the file that it shows.
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

from foredeck.model.canonical import canonical_json, decode_text, encode_text, sha256_hex

WORDS_LEFT = "$words"
"""The key under which a message that was pruned has its distinct words, by kind."""

LONG_STRING = 512
"""From this many characters on a string is a blob of its own."""
_MARKS = frozenset({"$text", "$base64", "$json"})
_SHA256 = re.compile(r"[0-9a-f]{64}")


class MessageKey(NamedTuple):
    """Which message it is: the host's entry id where it is known, and the content's address.

    Two messages with one address are the same message.
    """

    entry: str | None
    address: str


def entry_at(index: int) -> str:
    """The entry of a message whose host has none of its own: its place in the list."""
    return f"{index:08x}"


def texts_in(content: Any) -> list[str]:
    """What a message's content says: itself where it is a text, else its text blocks. Thinking,
    calls and images are left out."""
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else ()
    texts = (b.get("text") for b in blocks if isinstance(b, dict) and b.get("type") == "text")
    return [text if isinstance(text, str) else "" for text in texts]


def text_in(content: Any) -> str:
    """As `texts_in`, a line break between them."""
    return "\n".join(texts_in(content))


def pack(value: Any, blobs: dict[str, bytes]) -> Any:
    """A copy of a JSON value with its long strings moved into `blobs` (hash to bytes)."""
    if isinstance(value, str):
        if len(value) < LONG_STRING:
            return value
        return {"$text": put_blob(encode_text(value), blobs)}
    if isinstance(value, list):
        return [pack(item, blobs) for item in value]
    if isinstance(value, dict):
        return _pack_object(value, blobs)
    return value


def _pack_object(value: dict[str, Any], blobs: dict[str, bytes]) -> dict[str, Any]:
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
    """The bytes of an image block's data that is long and plain base64; else None."""
    data = value.get("data")
    if not isinstance(data, str) or len(data) < LONG_STRING:
        return None
    return _plain_base64(data)


def _plain_base64(data: str) -> bytes | None:
    """The bytes, if encoding them again gives exactly `data`; else None."""
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if base64.b64encode(raw).decode() == data else None


def put_blob(data: bytes, blobs: dict[str, bytes]) -> str:
    """Add `data` to `blobs` under its SHA-256, which is returned."""
    digest = sha256_hex(data)
    blobs[digest] = data
    return digest


def unpack(value: Any, blob: Callable[[str], bytes]) -> Any:
    """The inverse of `pack`; `blob` fetches bytes by hash and raises if they are missing."""
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
    """The hashes of the blobs that a packed value names."""
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
    """Add a message to `blobs` and return the address of its packed form.

    The address is the hash of the packed JSON. Packing is deterministic, so equal messages
    have equal addresses.
    """
    return put_blob(canonical_json(pack(message, blobs)), blobs)


@dataclass(frozen=True, slots=True)
class KnownMessages:
    """Messages that are stored already: a resumed session sends thousands of them again."""

    addresses: Container[str]
    by_print: dict[str, str]
    """By the fingerprint of a message, its address; what is sent is added."""

    def store(self, message: dict[str, Any], blobs: dict[str, bytes]) -> str:
        """As `store_message`, but of what is stored already nothing is added to `blobs`."""
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
    """What distinguishes a message from others, in a quarter of the time that its address takes.

    The same message may have several, by the order of its keys and the version of Python; two
    messages never have the same.
    """
    # SHA-256 is the fastest of the sound ones: processors have instructions for it.
    return sha256_hex(marshal.dumps(message, 2))[:32]


def load_message(address: str, blob: Callable[[str], bytes]) -> dict[str, Any]:
    """The message stored under `address`, as the host gave it (keys in canonical order); of one
    that was pruned, what is left of it without its words."""
    message = load_with_words(address, blob)
    message.pop(WORDS_LEFT, None)
    return message


def load_messages(
    addresses: Iterable[str], blobs: Callable[[Iterable[str]], dict[str, bytes]]
) -> dict[str, dict[str, Any]]:
    """Many as `load_message` has each, by address, in two readings of the store. Those that are
    missing are left out."""
    packed = {a: json.loads(decode_text(data)) for a, data in blobs(addresses).items()}
    texts = blobs({digest for value in packed.values() for digest in marked(value)})
    loaded: dict[str, dict[str, Any]] = {}
    for address, value in packed.items():
        if all(digest in texts for digest in marked(value)):
            loaded[address] = unpack(value, texts.__getitem__)
            loaded[address].pop(WORDS_LEFT, None)
    return loaded


def load_with_words(address: str, blob: Callable[[str], bytes]) -> dict[str, Any]:
    """As `load_message`; of a message that was pruned also its words, under `WORDS_LEFT`."""
    loaded = unpack(json.loads(decode_text(blob(address))), blob)
    if not isinstance(loaded, dict):
        raise TypeError(f"blob {address} does not hold a message")
    return loaded


def strings_in(value: Any, *, names: bool = False) -> Iterator[str]:
    """Every string inside a JSON value, in order; `names`: also those of fields."""
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


# Exchanges. A list of the host's may have holes, which `context/plan/repairs.py` closes.

MessageKind = Literal["user", "assistant", "result", "context", "opaque"]
"""`context`: text of other origin that the model sees as a user's (summaries, notes of other
extensions). `opaque`: a message whose content is not ours to edit, or that the model never sees."""


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
    """Which of the calls that wait for a result, by their ids, this one answers: the first of its
    id; where one of the two has no id, the first that may be meant. None for none."""
    for number, call in enumerate(calls):
        if call == result:
            return number
    may_be = (number for number, call in enumerate(calls) if not (call and result))
    return next(may_be, None)


def are_answered(messages: Iterable[CallOrResult]) -> Iterator[bool]:
    """After each message: whether every call so far has its result."""
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
    """The newest answer before a place, -1 where there is none. `sent`: one that the host sends,
    neither aborted nor failed."""
    for index in range(before - 1, -1, -1):
        if items[index].kind == "assistant" and not (sent and items[index].unsent):
            return index
    return -1


def exchanges(items: Sequence[CallOrResult], first: int, until: int) -> Iterator[list[int]]:
    """Each message of a span with the results that follow it, as places: of an answer those of its
    calls, of any other message none. What no model sees is left out."""
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
    """The exchange of a result: its answer, then all results. Empty for any other message, and for
    a result that answers no call before it."""
    first = newest_answer(items, index)
    if items[index].kind != "result" or first < 0:
        return []
    if answered_by([call.id for call in items[first].calls], items[index].call_id) is None:
        return []
    group = next(exchanges(items, first, len(items)))
    return group if index in group else []
