"""Keys and tokens by their usual shapes, masked in index and passages.

Hygiene, not a boundary.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MASK = "[secret]"

_SHAPES = (
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    r"\bsk-[A-Za-z0-9_-]{16,}",  # OpenAI, Anthropic, OpenRouter
    r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}",  # Stripe
    r"\bgh[pousr]_[A-Za-z0-9]{20,}",
    r"\bgithub_pat_[A-Za-z0-9_]{20,}",
    r"\bglpat-[A-Za-z0-9_-]{16,}",
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",  # Slack
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",  # AWS
    r"\bAIza[A-Za-z0-9_-]{30,}",  # Google
    r"\bya29\.[A-Za-z0-9_-]{20,}",
    r"\bnpm_[A-Za-z0-9]{30,}",
    r"\bpypi-[A-Za-z0-9_-]{30,}",
    r"\bhf_[A-Za-z0-9]{30,}",
    r"\beyJ[A-Za-z0-9_-]{6,}\.eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]*",  # JSON web tokens
)
_SHAPED = re.compile("|".join(_SHAPES))
_SHAPE_MARKS = (
    *("KEY-----", "sk-", "k_live_", "k_test_", "github_pat_", "glpat-", "xox", "eyJ"),
    *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "AKIA", "ASIA", "AIza", "ya29.", "npm_", "pypi-"),
    "hf_",
)
_KEY_HEADER = "KEY-----"

_NAMES = (
    *("password", "passwd", "secret", "token"),
    *(f"{kind}{joint}key" for kind in ("api", "access", "private") for joint in ("", "_", "-")),
)
_ASSIGNED = re.compile(
    r"""(["']?\s*(?:=|:)\s*["']?)
        (?=[^\s"',;]*[0-9])(?=[^\s"',;]*[A-Za-z])([A-Za-z0-9+/_=.~!@#$%^&*-]{12,})""",
    re.VERBOSE,
)
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}

_BEARER = re.compile(r"\b([Bb]earer\s+)[A-Za-z0-9._~+/=-]{16,}")
_IN_URL = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s:/@]+:)[^\s@/]+(?=@)")

SHAPED, BEARER, IN_URL, NAMED = 1, 2, 4, 8
"""Kinds of secrets, as a sum."""
ALL_KINDS = SHAPED | BEARER | IN_URL | NAMED


def signs_of_word(word: str) -> int:
    # A text is searched only for what one of its words is a sign of. Most have none, and words
    # repeat: this is far cheaper than searching every text.
    lower = word.lower()
    signs = 0
    if _KEY_HEADER in word or _SHAPED.search(word):
        signs |= SHAPED
    if lower.endswith("earer"):
        signs |= BEARER
    if "//" in word:
        signs |= IN_URL
    if lower.endswith(_NAMES):
        signs |= NAMED
    return signs


def mask_secrets(text: str, signs: int = ALL_KINDS) -> str:
    """Replaces keys, tokens and passwords by `MASK`."""
    if signs & SHAPED and any(mark in text for mark in _SHAPE_MARKS):
        text = _SHAPED.sub(MASK, text)
    if signs & BEARER and "earer" in text:
        text = _BEARER.sub(rf"\1{MASK}", text)
    if signs & IN_URL and "://" in text and "@" in text:
        text = _IN_URL.sub(rf"\1{MASK}", text)
    return _mask_named(text) if signs & NAMED else text


def _mask_named(text: str) -> str:
    position, parts = 0, []
    for start in sorted(set(_ends_of_names(text))):
        if start >= position and (assignment := _ASSIGNED.match(text, start)):
            parts += [text[position : assignment.end(1)], MASK]
            position = assignment.end()
    return "".join((*parts, text[position:])) if parts else text


def _ends_of_names(text: str) -> Iterator[int]:
    # One expression for all names, whatever their case, takes a hundred times as long.
    lower = text.lower()
    if len(lower) != len(text):  # a letter whose small form is two: places would be shifted
        lower = text.translate(_LOWER)
    for name in _NAMES:
        place = lower.find(name)
        while place >= 0:
            yield place + len(name)
            place = lower.find(name, place + 1)
