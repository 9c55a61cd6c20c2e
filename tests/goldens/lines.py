"""The prompts of one session as one line, and what two such lines say of each other."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from itertools import zip_longest

from context.sent import as_bytes
from foredeck.context.messages.shape import Message

Prompt = list[Message]


@dataclass(frozen=True, slots=True)
class Golden:
    """The prompts of one session. Two sessions with equal prompts have equal goldens."""

    whole: str
    """A hash of all of them."""
    calls: str
    """One character for each call: six bits of the hash of its prompt. A changed prompt keeps its
    character once in 64 times, so it may be noticed a call late, but never overlooked: see `whole`.
    """

    def difference(self, new: Golden) -> str:
        """How the prompts of `new` differ from these; empty where they are equal."""
        if self == new:
            return ""
        pairs = list(zip_longest(self.calls, new.calls))
        changed = sum(one != other for one, other in pairs) or "one"
        first = self.first_difference(new)
        return f"differs from call {first} on ({changed} of {len(pairs)} calls)"

    def first_difference(self, new: Golden) -> int:
        """The first call whose prompt differs, counted from 1; 1 where no character does."""
        pairs = enumerate(zip_longest(self.calls, new.calls), 1)
        return next((call for call, (one, other) in pairs if one != other), 1)


def golden_of(prompts: Iterable[Prompt]) -> Golden:
    """The golden of a session's prompts, in order."""
    whole, calls, known = blake2b(digest_size=9), [], _MessageHashes()
    for prompt in prompts:
        digest = blake2b(b"".join(map(known.of, prompt)), digest_size=16).digest()
        whole.update(digest)
        calls.append(_text(digest[:6])[0])
    return Golden(_text(whole.digest()), "".join(calls))


def as_text(prompt: Prompt) -> str:
    """A prompt for people: one message per line, its texts line by line."""
    texts = (json.dumps(message, indent=1) for message in prompt)
    return "\n".join(text.replace("\\n", "\n     ") for text in texts)


class _MessageHashes:
    """Hashes of messages. Most are the same objects from call to call, and hashed once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Message, bytes]] = {}

    def of(self, message: Message) -> bytes:
        """The hash of everything by which a provider could tell this message from another."""
        known = self._known.get(id(message))
        if known is None or known[0] is not message:
            digest = blake2b(as_bytes([message]).encode(), digest_size=16).digest()
            known = self._known[id(message)] = (message, digest)
        return known[1]


def _text(digest: bytes) -> str:
    return urlsafe_b64encode(digest).decode()
