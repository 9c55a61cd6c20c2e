"""How the SQLite store writes documents and blobs as bytes.

A body is deflated against a dictionary of common names and values, which makes it a third.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from foredeck.errors import Corrupt
from foredeck.model.documents import identity_hash
from foredeck.model.identity import decode_text, encode_text, json_text
from foredeck.store.versions import INDEXED, field_value

# The dictionaries are part of the file format. What was stored can only be read with the very same
# bytes, so they never change; a better one gets a number (and an encoding) of its own. What is
# likeliest to be repeated comes last in them, where a reference costs least.

_RECORD = b'"provenance":{"generator":"system","origin":"foredeck","parent_refs":[]},"session":"'
_NONE = b'","source":null,"source_hash":null,'
_PIN = (
    b'{"content_hash":"","metadata_view_hash":"","object":"system_prompt:","text_hash":null,'
    b'"token":"self","version":1}'
)

BODY_1 = b"".join(
    (
        b'{"cwd":"/home/user/","harness":"pi","host_file":null,"locked":false,"nickname":null,'
        b'"parent_session":null,"session_id":"","source":null,"source_hash":null,'
        b'"system_prompt_ref":"system_prompt:","view":null}{"locked":true,"messages":[],'
        b'"tools":[{"description":"","name":"","parameters":{"type":"object","required":[],'
        b'"properties":{"type":"string","number"}}}]}',
        b'"object":null,"provenance":{"generator":"human","origin":"/foredeck name",',
        b'{"char_count":0,"file_type":"typescript","rs","go","json","py","md","ts","locked":false,'
        b'"moved_to":null,"nickname":null,"provenance":{"generator":"agent","origin":"recorded '
        b'read","recorded write","recorded edit","disk","parent_refs":["moved_from:"]},"size":null'
        b',"source":{"filesystemId":"","path":"/home/user/repo/src/","type":"filesystem"},'
        b'"source_hash":"","state":"listed","state":"deleted","state":"text","view":null}',
        b'{"locked":true,"nickname":null,"provenance":{"generator":"system","origin":"","parent_'
        b'refs":[]},"session_ref":"","source":null,"source_hash":null,"turn_count":1,"view":null}',
        b'{"args":{"content":{"$text":""},"edits":[{"newText":"","oldText":""}],"limit":,"offset":'
        b',"pattern":"","timeout":300,"path":"/home/user/","command":"cd  && npm test 2>&1 | tail '
        b'-20"},"args_display":"","chat_ref":"chat:","content":"","details":{"diff":{"$text":""},'
        b'"firstChangedLine":,"truncation":{"truncated":true}},"details":{},"details":null,'
        b'"file_version_ref":{"content_hash":"","metadata_view_hash":"","object":"","text_hash":'
        b'"","token":"self"},"file_version_ref":null,"file_refs":[],"full_output":null,"images":'
        b'[],"locked":false,"nickname":null,"position":null,"provenance":{"generator":"tool","origin":"toolcall",'
        b'"parent_refs":[]},"provider_call_id":"call_","provider_call_id":"toolu_01","source":null'
        b',"source_hash":null,"status":"fail","tool":"grep","status":"ok","tool":"write","tool":'
        b'"edit","tool":"read","tool":"bash","turn_ref":"turn:","view":null}',
        b'{"assistant":"","assistant_meta":{"api":"openai-responses","api":"anthropic-messages",'
        b'"model":"claude-opus-4.","provider":"anthropic","stopReason":"stop","stopReason":'
        b'"toolUse","timestamp":17,"usage":{"cacheRead":0,"cacheWrite":0,"cost":{"cacheRead":0,'
        b'"cacheWrite":0,"input":0,"output":0,"total":0},"input":1,"output":,"totalTokens":}},'
        b'"locked":false,"nickname":null,"others":[],',
        _RECORD + _NONE + b'"toolcall_ids":["toolu_01"],"user":null,"user_turn":1,"view":null}',
        b'{"label":"/home/user/","label":"call_","label":"toolu_01","locked":false,"nickname":null'
        b',"object":"","object_type":"file","object_type":"toolcall","ordinal":1,"version_ref":',
        _PIN + b"," + _RECORD + _NONE + b'"view":null}',
        b'{"acks":[],"changed_from":1,"decision":{"kind":"host","kind":"rebase","reason":"cold",'
        b'"kind":"append"},"foldable":{},"keys":[["",""],["",""],[null,""]],"layout":"anchored",'
        b'"locked":false,"model":{"name":"anthropic/claude-opus-4.","window":200000},"nickname":'
        b'null,"omitted":[],"ops":[[1,"reference",[{"text":"@ folded: ","type":"text"}],1,1,null,'
        b'""],[1,"full",null,1,1,null,""]],"ordinal":1,"parent":"call:","policy":"adaptive",',
        _RECORD + b'","says":[],"sets":{"active+":[1],"active-":[1],"pool+":[1],"released+":[1]}',
        b',"shared":1,"source":null,"source_hash":null,"state":{},"stats":{"active":5,"chars_host":1,'
        b'"chars_sent":1,"folded":0,"messages":1,"objects":1,"pinned":0},"system":',
        _PIN + b',"time_ms":17,"tip":"","view":null}',
    )
)
"""For version bodies, in key order; 4 KB."""

MESSAGE_1 = b"".join(
    (
        b'{"content":[{"data":{"$base64":""},"mimeType":"image/png","type":"image"}],"role":"user"'
        b',"timestamp":17}{"content":"","role":"custom","bashExecution","branchSummary",'
        b'"compactionSummary","display":true}',
        b'{"api":"google-generative-ai","content":[{"text":{"$text":""},"textSignature":"","type":'
        b'"text"},{"text":"","type":"text"},{"thinking":{"$text":""},"thinkingSignature":{"$text":'
        b'""},"type":"thinking"},{"thinking":"","thinkingSignature":"reasoning_content","type":'
        b'"thinking"},{"arguments":{"newText":"","oldText":"","path":""},"id":"","name":"edit",'
        b'"type":"toolCall"},{"arguments":{"content":{"$text":""},"path":""},"id":"","name":'
        b'"write","type":"toolCall"},{"arguments":{"edits":[{"newText":{"$text":""},"oldText":"',
        b'"}],"path":""},"name":"edit"},{"arguments":{"limit":100,"offset":1,"pattern":"","path":'
        b'"/home/user/"},"id":"call_","name":"grep","name":"read","thoughtSignature":"","type":'
        b'"toolCall"},{"arguments":{"command":"cd  && npm test 2>&1 | tail -20","timeout":300},'
        b'"id":"toolu_01","name":"bash","type":"toolCall"}],"model":"gpt-5.","model":"gemini-',
        b'model":"claude-opus-4.","provider":"openai","provider":"google","provider":"anthropic",'
        b'"api":"openai-responses","api":"openai-completions","api":"anthropic-messages","content"'
        b':[],"role":"assistant","stopReason":"stop","stopReason":"toolUse","timestamp":17,"usage"'
        b':{"cacheRead":0,"cacheWrite":0,"cost":{"input":0,"output":0,"total":0},"totalTokens":}}',
        b'{"content":[{"text":"Successfully replaced text in /home/user/","type":"text"}],"details'
        b'":{"diff":{"$text":""}},"content":[{"text":{"$text":""},"type":"text"}],"isError":true,'
        b'"isError":false,"role":"toolResult","timestamp":17,"toolCallId":"call_","toolName":'
        b'"write","toolName":"edit","toolName":"read","toolCallId":"toolu_01","toolName":"bash"}',
        b'{"content":[{"text":"","type":"text"}],"role":"user","timestamp":17}',
    )
)
"""For packed messages, in key order; 2.5 KB."""


_SMALL = 8_192
_SAMPLE = 16_384
_LARGE = 65_536
MAX_BLOB = 2**30
MAX_BODY = 2**28
"""Of a document's fields without long texts, which are blobs."""
_WORTH_IT = 0.9
_PLAIN, _DEFLATED, _BY_DICTIONARY = 0, 1, 2


def _primed(dictionary: bytes) -> Any:
    # A small window and little memory, since setting them up is most of the work.
    return zlib.compressobj(6, zlib.DEFLATED, -13, 6, 0, dictionary)


_BODY_DEFLATER, _MESSAGE_DEFLATER = _primed(BODY_1), _primed(MESSAGE_1)
_COLUMNS = frozenset(
    {"id", "type", "identity_hash", "content_hash", "text_hash", "metadata_view_hash"}
)

NOT_BY_TYPE = frozenset({"turn", "member", "call"})
"""Types queried only by field, to save an index."""


@dataclass(frozen=True, slots=True)
class EncodedVersion:
    """A version as the tables hold it."""

    id: str
    type: str
    identity_hash: str
    content_hash: bytes
    view_hash: bytes
    text_hash: bytes | None
    body: bytes
    keys: frozenset[bytes]

    @property
    def columns(self) -> tuple[bytes, bytes, bytes | None, bytes]:
        """The version's row, as `decode_fields` takes it."""
        return self.content_hash, self.view_hash, self.text_hash, self.body


def id_column(id: str) -> str | bytes:
    """An id as stored."""
    # SQLite's text cannot hold a lone surrogate, its bytes can.
    try:
        id.encode()
    except UnicodeEncodeError:
        return encode_text(id)
    return id


def id_text(stored: str | bytes) -> str:
    """The inverse of `id_column`."""
    return stored if isinstance(stored, str) else decode_text(stored)


def encode_version(fields: Mapping[str, Any]) -> EncodedVersion:
    rest = {name: value for name, value in fields.items() if name not in _COLUMNS}
    body = json_text(rest).encode()
    packed = _deflate(_BODY_DEFLATER, body)
    is_smaller = len(packed) < len(body)
    return EncodedVersion(
        id=fields["id"],
        type=fields["type"],
        identity_hash=fields["identity_hash"],
        content_hash=bytes.fromhex(fields["content_hash"]),
        view_hash=bytes.fromhex(fields["metadata_view_hash"]),
        text_hash=bytes.fromhex(fields["text_hash"]) if fields["text_hash"] else None,
        body=bytes([_BY_DICTIONARY]) + packed if is_smaller else bytes([_PLAIN]) + body,
        keys=frozenset(lookup_keys(fields)),
    )


def decode_fields(
    id: str, type: str, content_hash: bytes, view_hash: bytes, text_hash: bytes | None, body: bytes
) -> dict[str, Any]:
    """All fields; `content` only if stored in the body. Raises `Corrupt`."""
    try:
        fields: dict[str, Any] = json.loads(body_text(id, type, body))
        fields["identity_hash"] = identity_hash(type, fields["source"])
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise _damaged(id, type, error) from error
    fields["id"] = id
    fields["type"] = type
    fields["content_hash"] = content_hash.hex()
    fields["metadata_view_hash"] = view_hash.hex()
    fields["text_hash"] = None if text_hash is None else text_hash.hex()
    return fields


def body_text(id: str, type: str, body: bytes) -> str:
    """A stored body's JSON. Raises `Corrupt`."""
    try:
        kind, data = body[0], body[1:]
        if kind == _BY_DICTIONARY:
            data = _inflate(zlib.decompressobj(-15, BODY_1), data, MAX_BODY)
        elif kind != _PLAIN:
            raise ValueError(f"unknown encoding {kind}")
        return data.decode()
    except (zlib.error, ValueError, LookupError) as error:
        raise _damaged(id, type, error) from error


def _damaged(id: str, type: str, error: Exception) -> Corrupt:
    return Corrupt(f"{type} {id!r}: the stored fields are damaged ({error})")


def _deflate(primed: Any, data: bytes) -> bytes:
    deflater = primed.copy()
    packed: bytes = deflater.compress(data) + deflater.flush()
    return packed


def encode_blob(data: bytes) -> tuple[int, bytes]:
    """`(encoding, bytes)`, deflated if that saves a tenth."""
    # A large blob that does not shrink at its start (an image) is not tried as a whole.
    if len(data) > _LARGE and len(zlib.compress(data[:_SAMPLE], 1)) > _SAMPLE * _WORTH_IT:
        return _PLAIN, data
    if len(data) <= _SMALL:
        encoding, packed = _BY_DICTIONARY, _deflate(_MESSAGE_DEFLATER, data)
    else:
        encoding, packed = _DEFLATED, zlib.compress(data, 1 if len(data) > _LARGE else 4)
    return (encoding, packed) if len(packed) <= len(data) * _WORTH_IT else (_PLAIN, data)


def decode_blob(digest: str, size: int, encoding: int, data: bytes) -> bytes:
    """The original bytes, unverified. Raises `Corrupt`."""
    try:
        if size > MAX_BLOB:
            raise ValueError(f"{size} bytes are said to be in it")
        if encoding == _BY_DICTIONARY:
            data = _inflate(zlib.decompressobj(-15, MESSAGE_1), data, size + 1)
        elif encoding == _DEFLATED:
            data = _inflate(zlib.decompressobj(), data, size + 1)
        elif encoding != _PLAIN:
            raise ValueError(f"unknown encoding {encoding}")
        if len(data) != size:
            raise ValueError(f"{len(data)} bytes instead of {size}")
    except (zlib.error, ValueError) as error:
        raise Corrupt(f"blob {digest}: the stored bytes are damaged ({error})") from error
    return data


def _inflate(unpacker: Any, data: bytes, limit: int) -> bytes:
    data_out: bytes = unpacker.decompress(data, limit)
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError("the deflated bytes do not end where they should")
    return data_out


_TOP_FIELDS = frozenset(name for name in INDEXED if "." not in name)
_INNER_FIELDS = tuple(name for name in INDEXED if "." in name)


def lookup_keys(fields: Mapping[str, Any]) -> Iterator[bytes]:
    """A version's index entries: one per indexed field, usually one for the type."""
    type_ = fields["type"]
    if type_ not in NOT_BY_TYPE:
        yield type_key(type_)
    # Most documents have two or three of these fields.
    for name in (*(_TOP_FIELDS & fields.keys()), *_INNER_FIELDS):
        value = field_value(fields, name)
        if isinstance(value, str | int):
            yield field_key(type_, name, value)


@lru_cache(maxsize=64)
def type_key(type: str) -> bytes:
    """The index entry of a type."""
    return _key(f"{len(type)}:{type}")


# Most documents of a commit are of one session. `typed`: 1 and True have keys of their own.
@lru_cache(maxsize=256, typed=True)
def field_key(type: str, name: str, value: str | int | bool) -> bytes:
    """The index entry of a type's documents with field `name` equal to `value`."""
    kind = "s" if isinstance(value, str) else "b" if isinstance(value, bool) else "i"
    return _key(f"{len(type)}:{type}:{name}:{kind}{value}")


def _key(text: str) -> bytes:
    return hashlib.blake2b(encode_text(text), digest_size=16).digest()
