"""Keys and tokens in texts, by their usual shapes: they are left out of the index and of passages.

Hygiene, not a boundary: a secret of an unknown shape is indexed as any other word.
"""

from __future__ import annotations

import re

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
    *("PRIVATE KEY-----", "sk-", "k_live_", "k_test_", "github_pat_", "glpat-", "xox", "eyJ"),
    *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "AKIA", "ASIA", "AIza", "ya29.", "npm_", "pypi-"),
    "hf_",
)

_NAMED = re.compile(
    r"""((?:password|passwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key)
         ["']?\s*(?:=|:)\s*["']?)
        (?=[^\s"',;]*[0-9])(?=[^\s"',;]*[A-Za-z])([A-Za-z0-9+/_=.~!@#$%^&*-]{12,})""",
    re.IGNORECASE | re.VERBOSE,
)
_NAME_MARKS = ("passw", "secret", "token", "key")

_BEARER = re.compile(r"\b([Bb]earer\s+)[A-Za-z0-9._~+/=-]{16,}")
_IN_URL = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s:/@]+:)[^\s@/]+(?=@)")


def mask_secrets(text: str) -> str:
    """The text with everything that looks like a key, a token or a password replaced by `MASK`."""
    # Most texts hold none: looking for what all secrets of a shape contain is far cheaper.
    if any(mark in text for mark in _SHAPE_MARKS):
        text = _SHAPED.sub(MASK, text)
    if "earer " in text:
        text = _BEARER.sub(rf"\1{MASK}", text)
    if "://" in text and "@" in text:
        text = _IN_URL.sub(rf"\1{MASK}", text)
    lower = text.lower()
    if any(mark in lower for mark in _NAME_MARKS):
        text = _NAMED.sub(rf"\1{MASK}", text)
    return text
