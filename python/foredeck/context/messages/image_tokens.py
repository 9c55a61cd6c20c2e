"""What images weigh in tokens, by their size and provider."""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

from foredeck.context.messages.items import IMAGE_BEGINS

UNKNOWN_TOKENS = 1200
"""For an unknown size or provider."""

HEADER_CHARS = (64, 4096, 4 * 65_536)
"""Read step by step: a JPEG has its size after metadata."""


class Pixels(NamedTuple):
    width: int
    height: int


def image_tokens(block: Mapping[str, Any], api: str) -> int:
    """Tokens of an image block on a wire."""
    size = pixels_of(str(block.get("data") or ""))
    if size is None or not size.width or not size.height:
        return UNKNOWN_TOKENS
    if api.startswith(("anthropic", "bedrock")):
        return _anthropic(size)
    if api.startswith(("openai", "azure")):
        return _openai(size)
    if api.startswith("google"):
        return _google(size)
    return UNKNOWN_TOKENS


def _anthropic(size: Pixels) -> int:
    scale = min(1.0, 1568 / max(size))
    return max(1, min(1600, math.ceil(size.width * scale * size.height * scale / 750)))


def _openai(size: Pixels) -> int:
    scale = min(1.0, 2048 / max(size))
    scale = min(scale, 768 / min(size))
    tiles = math.ceil(size.width * scale / 512) * math.ceil(size.height * scale / 512)
    return 85 + 170 * tiles


def _google(size: Pixels) -> int:
    if max(size) <= 384:
        return 258
    return 258 * math.ceil(size.width / 768) * math.ceil(size.height / 768)


def pixels_of(data: str) -> Pixels | None:
    """Size of a base64 PNG, JPEG, GIF or WebP file; None for anything else."""
    for length in HEADER_CHARS:
        head = data[:length]
        try:
            return _size(base64.b64decode(head[: len(head) - len(head) % 4]))
        except (binascii.Error, struct.error, ValueError, IndexError):
            if len(data) <= length:
                break
    return None


def _size(raw: bytes) -> Pixels | None:
    if raw.startswith(IMAGE_BEGINS["png"]):
        return Pixels(*struct.unpack(">II", raw[16:24]))
    if raw.startswith((b"GIF87a", b"GIF89a")):
        return Pixels(*struct.unpack("<HH", raw[6:10]))
    if raw.startswith(b"RIFF") and raw[8:12] == b"WEBP":
        return _webp(raw)
    return _jpeg(raw) if raw.startswith(IMAGE_BEGINS["jpeg"]) else None


def _webp(raw: bytes) -> Pixels | None:
    match raw[12:16]:
        case b"VP8 ":
            width, height = struct.unpack("<HH", raw[26:30])
            return Pixels(width & 0x3FFF, height & 0x3FFF)
        case b"VP8L":
            bits = struct.unpack("<I", raw[21:25])[0]
            return Pixels((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
        case b"VP8X":
            width, height = (int.from_bytes(raw[at : at + 3], "little") for at in (24, 27))
            return Pixels(width + 1, height + 1)
    return None


def _jpeg(raw: bytes) -> Pixels | None:
    """The size is in the first start-of-frame segment."""
    at = 2
    while raw[at] == 0xFF:
        marker, length = raw[at + 1], struct.unpack(">H", raw[at + 2 : at + 4])[0]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", raw[at + 5 : at + 9])
            return Pixels(width, height)
        at += 2 + length
    return None
